"""A language model in this very process, so that an agent runs on a machine with nothing else on it."""
