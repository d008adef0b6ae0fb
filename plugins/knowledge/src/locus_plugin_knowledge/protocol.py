"""The contract of a research domain, and the values that go through it; also as ``locus.deepagent.protocol``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from attrs import Attribute, Factory, field, frozen

from locus.core import EMPTY, FrozenDict, freeze

__all__ = ["Grounding", "ItemRef", "KnowledgeProvider", "KnowledgeRow"]


def _to_tuple(value: Any) -> Any:
    if isinstance(value, str):
        raise TypeError(f"expected a list of strings, got {value!r:.80}; write [{value!r:.80}]")
    return tuple(value) if isinstance(value, Iterable) else value


def _text(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a str, got {value!r:.80}")


def _name(_: object, attribute: Attribute[Any], value: Any) -> None:
    _text(_, attribute, value)
    if not value.strip():
        raise ValueError(f"{attribute.name} must not be empty, got {value!r}")


def _texts(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{attribute.name} must be strings, got {value!r:.80}")


def _share(_: object, attribute: Attribute[Any], value: Any) -> None:
    if value is not None and not (type(value) in (int, float) and 0 <= value <= 1):
        raise ValueError(f"{attribute.name} must be a number from 0 to 1, or None, got {value!r:.80}")


def _payload(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"field {attribute.name!r}: expected a mapping, got {value!r:.80} ({type(value).__name__})")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(
                f"field {attribute.name!r}: expected keys that are a str, got {key!r:.80} ({type(key).__name__})"
            )


def _key_of(value: Any) -> str:
    return f"{value.provider}:{value.name}"


@frozen
class ItemRef:
    """A target that a provider discovered.

    Args:
        name: what it is called.
        provider: the name of the provider that found it.
        key: identifies it across runs and providers; the catalog's primary key. Default: ``"<provider>:<name>"``.
        tags: any words about it.

    Raises:
        TypeError, ValueError: a field is not text, or the name, the provider or the key is empty.
    """

    name: str = field(validator=_name)
    provider: str = field(validator=_name)
    key: str = field(default=Factory(_key_of, takes_self=True), validator=_name)
    tags: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=_texts)


@frozen
class Grounding:
    """Live evidence about an item.

    Args:
        summary: in words, for the agent that researches the item.
        payload: the data, with a JSON form.

    Raises:
        TypeError: the summary is not text, or the payload is not a mapping with keys of text.
    """

    summary: str = field(default="", validator=_text)
    payload: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, validator=_payload)


@frozen(kw_only=True)
class KnowledgeRow:
    """One row of a catalog: what the research of an item came to.

    The base has what holds for every provider, so that one catalog can search them all. A provider derives a class with
    fields of its own, decorated with ``@attrs.frozen(kw_only=True)``.

    Args:
        name: of the item.
        provider: the name of the provider.
        key: of the item. Default: ``"<provider>:<name>"``.
        descriptions: texts about it, the best first.
        domains: the fields of knowledge that it belongs to.
        tags: any words about it.
        confidence: how sure the research is, from 0 to 1; None = not said.
        embedding: a vector for the text, where a provider makes one.
        search_text: further words by which it is found.
        model_id: the model that researched it.
        prompt_hash: of what the agent was told, see `scan`; rows with another one are from other instructions.
        facts: the ids of the facts that it rests on, see `ScanResult.facts`.

    Raises:
        TypeError, ValueError: a field has the wrong type, or the confidence is not from 0 to 1.
    """

    name: str = field(validator=_name)
    provider: str = field(validator=_name)
    key: str = field(default=Factory(_key_of, takes_self=True), validator=_name)
    descriptions: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=_texts)
    domains: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=_texts)
    confidence: float | None = field(default=None, validator=_share)
    embedding: tuple[float, ...] | None = field(default=None, converter=_to_tuple)
    search_text: str = field(default="", validator=_text)
    model_id: str = field(default="", validator=_text)
    prompt_hash: str = field(default="", validator=_text)
    facts: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=_texts)


@runtime_checkable
class KnowledgeProvider(Protocol):
    """A research domain. `scan` calls these methods, in this order; each may be sync or async.

    A synchronous method is called in a worker thread. All may raise: what `ground` and `merge_to_row` raise is the
    error of the item, what the others raise leaves the scan open, so that it can be resumed.
    """

    def open(self) -> Any:
        """Acquire what the scan needs; called once, and again in a process that resumes the scan."""

    def tools_for_agent(self) -> Any:
        """The tools of the agent that researches an item: a list."""

    def output_schema(self) -> Any:
        """The type of what that agent submits: a pydantic model, an attrs class, a dataclass, a TypedDict."""

    def discover(self, query: str) -> Any:
        """The `ItemRef`s to research: an iterable, or an async one; called once, also over resumes."""

    def ground(self, item: ItemRef) -> Any:
        """Live evidence about an item: a `Grounding`."""

    def merge_to_row(self, item: ItemRef, grounding: Grounding, research: Any, model_id: str, prompt_hash: str) -> Any:
        """The row of an item: a `KnowledgeRow`, of the class that the method is annotated to return.

        Args:
            item: the item.
            grounding: what `ground` gave.
            research: what the agent submitted, as the type that `output_schema` gives.
            model_id: the model's name.
            prompt_hash: see `KnowledgeRow`.
        """

    def close(self) -> Any:
        """Release what `open` acquired: at the end of the scan, whatever the end is."""
