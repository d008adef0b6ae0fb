"""The research workflow: execute, infer causes, summarize, check, and again where it does not hold."""
