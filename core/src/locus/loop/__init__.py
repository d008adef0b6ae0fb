"""The machine: a pure router, four nodes, one driver."""
