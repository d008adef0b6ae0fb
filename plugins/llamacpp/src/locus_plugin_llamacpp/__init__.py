"""A language model without a server or a key, so that an agent runs on a machine with nothing else on it."""
