"""`ToolSpec`: what a model reads of a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, cast

from attrs import field

from locus.core.frozen import FrozenDict, freeze, frozen

__all__ = ["SESSION_TOOLS", "Effect", "ToolExample", "ToolSpec"]

#: The key of the tools that plugins bring to one run in ``state.metadata``.
SESSION_TOOLS = "locus.tools"

Effect = Literal["pure", "keyed", "once"]

W = TypeVar("W")


@frozen(kw_only=True)
class ToolExample:
    """A worked example of one call: what the user says, how the tool is called, what it returns.

    Args:
        user: the request that leads to the call.
        arguments: the right arguments.
        result: what the tool returns, as text.
        answer: what the assistant then says.
    """

    user: str
    arguments: FrozenDict[str, Any] = field(converter=freeze)
    result: str = ""
    answer: str = ""


@frozen(kw_only=True)
class ToolSpec:
    """What a model reads of a tool.

    Args:
        name: unique within the request; letters, digits, ``_`` and ``-``, at most 64.
        description: when to use it, when not, what it returns.
        parameters: JSON Schema of the arguments, an object schema.
        examples: worked examples, for models that need them.
    """

    name: str
    description: str
    parameters: FrozenDict[str, Any] = field(converter=freeze)
    examples: tuple[ToolExample, ...] = ()
    # The encoded form, computed once per provider: the tools of turn k+1 are byte-identical to those of turn k.
    _wire: dict[str, Any] = field(factory=dict, init=False, eq=False, repr=False)

    @property
    def properties(self) -> Mapping[str, Any]:
        """The parameters by name, each a JSON Schema."""
        found: Mapping[str, Any] = self.parameters.get("properties", {})
        return found

    def wire(self, form: str, encode: Callable[[ToolSpec], W]) -> W:
        """The encoded form of this tool, computed once per ``form`` and kept beside it; see `Message.wire`.

        Args:
            form: a name for the encoding, unique to the encoder and its settings.
            encode: the pure function from the tool to its encoded form.
        """
        try:
            return cast("W", self._wire[form])
        except KeyError:
            made = self._wire[form] = encode(self)
            return made
