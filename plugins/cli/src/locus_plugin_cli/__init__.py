"""The `locus` command: a terminal for the framework, kept out of the kernel."""
