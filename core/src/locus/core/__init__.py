"""Values: what a run is made of. No I/O, no async, no hooks, no clock."""
