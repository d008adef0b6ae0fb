"""``locus threads``: the conversations that are kept, one module a group of commands."""
