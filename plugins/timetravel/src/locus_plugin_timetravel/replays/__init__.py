"""Replay: the host that answers from the record, the run that asks it, and the report of what differs."""
