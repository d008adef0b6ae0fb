"""The examples of deepagents, each written for both."""
