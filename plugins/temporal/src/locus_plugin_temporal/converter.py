"""Values of Locus as arguments and results of workflows: an `AgentState`, messages, what is registered as data."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
    PayloadConverter,
)

from locus.core import decode, decode_data, encode, encode_data
from locus.core.errors import ConfigError, NotSerialisable
from locus.core.messages import Message, Usage
from locus.core.state import AgentState

__all__ = ["with_locus_values"]

#: The classes that are sent in a form of their own, by the name that is sent with them.
_TYPED: dict[str, type] = {"message": Message, "usage": Usage}
_NAMES = {cls: name for name, cls in _TYPED.items()}


class _LocusValues(EncodingPayloadConverter):
    """Reads and writes values of Locus; leaves all others to the next converter."""

    @property
    def encoding(self) -> str:
        """What is written beside each value."""
        return "json/locus"

    def to_payload(self, value: Any) -> Payload | None:
        """The payload of a value of Locus; None of any other.

        Raises:
            NotSerialisable: a part of it has no JSON form.
        """
        if isinstance(value, AgentState):
            kind, form = "state", value.to_checkpoint()
        elif type(value) in _NAMES:
            kind, form = _NAMES[type(value)], encode(value)
        elif type(value).__module__.partition(".")[0] == "locus":
            try:
                kind, form = "data", encode_data(value)
            except NotSerialisable:
                return None
        else:
            return None
        metadata = {"encoding": self.encoding.encode(), "locus": kind.encode()}
        return Payload(metadata=metadata, data=json.dumps(form, separators=(",", ":")).encode())

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """The value.

        Raises:
            CheckpointError: it is damaged.
        """
        kind, form = payload.metadata["locus"].decode(), json.loads(payload.data)
        if kind == "state":
            return AgentState.from_checkpoint(form)
        return decode_data(form) if kind == "data" else decode(form, _TYPED[kind])


def with_locus_values(given: DataConverter | None) -> DataConverter:
    """A converter that knows values of Locus, too; its codec and its failures stay as they are.

    Raises:
        ConfigError: it converts payloads in another way than one by one.
    """
    given = given or DataConverter.default
    base = given.payload_converter_class
    if issubclass(base, _Marker):
        return given
    if not issubclass(base, CompositePayloadConverter):
        raise ConfigError(f"{base.__name__} is not a CompositePayloadConverter, to which values of Locus can be added")
    return dataclasses.replace(given, payload_converter_class=_class_of(base))


class _Marker:
    """Of the converters that know values of Locus."""


def _class_of(base: type[CompositePayloadConverter]) -> type[PayloadConverter]:
    class WithLocusValues(CompositePayloadConverter, _Marker):
        def __init__(self) -> None:
            super().__init__(_LocusValues(), *base().converters.values())

    return WithLocusValues
