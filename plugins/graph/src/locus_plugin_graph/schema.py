"""`Schema`: the keys of a graph's values, and what merges them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from locus import schema
from locus.core.errors import closest
from locus.core.messages import Message
from locus_plugin_graph.errors import GraphError

if TYPE_CHECKING:
    from locus_plugin_graph.values import Reducer

__all__ = ["Schema"]


class Schema:
    """What is known of the values of a graph before it runs.

    Args:
        annotated: a class whose annotations are the keys, ``Annotated[type, reducer]`` where parallel writes are
            merged; None = any keys.
        reducers: key -> what merges its values, over those of the class.

    Raises:
        GraphError: a key has no JSON form, or a reducer is not a function or for an unknown key.
    """

    __slots__ = ("keys", "reducers")

    def __init__(self, annotated: type | None, reducers: Mapping[str, Reducer]) -> None:
        #: None = any.
        self.keys: frozenset[str] | None = None
        self.reducers: dict[str, Reducer] = {}
        if annotated is not None:
            hints = _read_hints(annotated)
            self.keys = frozenset(hints)
            for key, hint in hints.items():
                _check_type(annotated.__name__, key, hint)
                for extra in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
                    if callable(extra):
                        self.reducers[key] = extra
        if not isinstance(reducers, Mapping):
            raise GraphError(f"reducers must be a dict of keys and functions, got {reducers!r:.80}")
        for key, reducer in reducers.items():
            self.known_key(key, "reducers")
            if not callable(reducer):
                raise GraphError(f"the reducer of {key!r} must be a function of two values, got {reducer!r:.80}")
            self.reducers[key] = reducer

    def known_key(self, key: Any, where: str) -> str:
        """A key that the graph has.

        Raises:
            GraphError: it does not.
        """
        if not isinstance(key, str):
            raise GraphError(f"{where}: a key is a str, got {key!r:.80}")
        if self.keys is not None and key not in self.keys:
            near = closest(key, self.keys)
            hint = f"; did you mean {near!r}?" if near else f"; it has {', '.join(sorted(self.keys))}"
            raise GraphError(f"{where}: the schema has no key {key!r}{hint}")
        return key

    def known_keys(self, keys: Collection[str] | None, where: str) -> tuple[str, ...] | None:
        """Keys that the graph has; None for None.

        Raises:
            GraphError: it does not have one of them, or they are a single text.
        """
        if isinstance(keys, str) or not isinstance(keys, Collection | None):
            raise GraphError(f"{where} must be a collection of keys, got {keys!r:.80}; write ({keys!r:.80},)")
        return None if keys is None else tuple(self.known_key(key, where) for key in keys)


def _read_hints(annotated: Any) -> dict[str, Any]:
    if not isinstance(annotated, type):
        raise GraphError(f"a schema is a class with annotations, got {annotated!r:.80}")
    try:
        return get_type_hints(annotated, include_extras=True)
    except (NameError, TypeError) as e:
        raise GraphError(f"the annotations of {annotated.__name__} cannot be read: {e}") from e


def _check_type(name: str, key: str, hint: Any) -> None:
    """Refuse a key whose type has no JSON form.

    Raises:
        GraphError: it has none.
    """
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if plain is Message or Message in get_args(plain):
        return
    try:
        schema.of(plain)
    except (TypeError, ValueError) as e:
        raise GraphError(f"{name}.{key}: a value of type {plain!r} has no JSON form: {e}") from e
