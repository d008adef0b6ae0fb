"""What is wrong with a graph, or went wrong in one."""

from __future__ import annotations

from locus.core.errors import ConfigError, LocusError

__all__ = ["ConflictingUpdate", "GraphError", "NodeError"]


class GraphError(ConfigError):
    """A graph cannot be run as it was put together; the message names the node or the key."""


class NodeError(LocusError):
    """A node failed, or what it returned cannot be used.

    Args:
        node: its name.
        problem: what is wrong.
    """

    def __init__(self, node: str, problem: str) -> None:
        self.node, self.problem = node, problem
        super().__init__(f"node {node!r}: {problem}")


class ConflictingUpdate(NodeError):
    """Two tasks of one super-step wrote a key that has no reducer.

    Args:
        first, second: the names of their nodes.
        key: the key.
    """

    def __init__(self, first: str, second: str, key: str) -> None:
        self.key = key
        super().__init__(
            second, f"{first!r} and {second!r} both wrote {key!r} in one super-step; declare a reducer for {key!r}"
        )
