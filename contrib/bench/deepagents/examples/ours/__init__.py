"""The examples with this framework."""
