"""YAML as plain data: no key twice, no key that is a list or a mapping, no aliases that repeat millions of values."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

__all__ = ["NotPlain", "parse_yaml"]

#: Values that aliases may add to those that are written: ten lines of them can expand to billions.
_MOST_REPEATED = 1_000_000


class NotPlain(ValueError):
    """A text is not YAML, or not plain data; the message says why."""


def parse_yaml(text: str) -> Any:
    """What a text of YAML holds; None for an empty one.

    Raises:
        NotPlain: it is not YAML, holds what is not plain data, or its aliases repeat too much.
    """
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None
            # Before anything is made of it: merged keys are copied then.
            _check_aliases(root)
            return loader.construct_document(root)
        finally:
            loader.dispose()
    # What follows the first three is how PyYAML says that a value does not fit its tag, such as `!!bool x`.
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError, LookupError, OverflowError, TypeError) as e:
        what = "nested too deeply" if isinstance(e, RecursionError) else " ".join(str(e).split())
        raise NotPlain(what) from e


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # without stubs it has no type
    """Plain data; a key that is given twice is an error, since the first of the two would be ignored."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "expected a key that is text, got a list or a mapping", key.start_mark
                )
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _check_aliases(root: Any) -> None:
    """Refuse aliases that repeat too many values, or the value that they are in."""
    # By the id of a node, of how many it is made, aliases followed; None while that is being counted.
    sizes: dict[int, int | None] = {}

    def count(node: Any) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise yaml.MarkedYAMLError(
                    None, None, "an alias must not be within the value that it repeats", node.start_mark
                )
            return known
        sizes[id(node)] = None
        size = 1
        if isinstance(node, yaml.SequenceNode):
            size += sum(map(count, node.value))
        elif isinstance(node, yaml.MappingNode):
            size += sum(count(key) + count(value) for key, value in node.value)
        sizes[id(node)] = size
        return size

    if count(root) - len(sizes) > _MOST_REPEATED:
        raise NotPlain(f"its aliases repeat more than {_MOST_REPEATED:,} values")
