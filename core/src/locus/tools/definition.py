"""`Tool`: a function that a model may call, with everything dispatch needs to know about it, and what a model reads.

A tool is a value. It can still be called like the function that it was made from, so a unit test of a tool is a
call of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast

from attrs import evolve, field

from locus.core.frozen import FrozenDict, freeze, frozen
from locus.core.labels import Label, Reads
from locus.core.lazy import Lazy

if TYPE_CHECKING:
    from msgspec import structs

    from locus.schema import canonical, checking, jsonschema
    from locus.schema.arguments import Parameters
    from locus.schema.checking import Problem
else:
    canonical = Lazy("locus.schema.canonical")
    checking = Lazy("locus.schema.checking")
    jsonschema = Lazy("locus.schema.jsonschema")
    structs = Lazy("msgspec.structs")

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W")

#: The key of the tools that plugins bring to one run in ``state.metadata``.
SESSION_TOOLS = "locus.tools"

Effect = Literal["pure", "keyed", "once"]

#: False: the body runs each time. True: once per run for the same arguments. ``"thread"``: once per thread.
Idempotent = Literal[False, True, "thread"]

#: Parameters of these names, or with this beginning of a format, are taken for URLs.
_URL_NAMES = frozenset({"endpoint", "href", "link", "links", "uri", "uris", "url", "urls", "webhook"})
_URL_FORMATS = ("uri", "iri")

# A longer list of parameters would bury what is wrong.
_LONGEST_USAGE = 400

#: How much of a result the model gets, in characters, unless the tool says otherwise.
RESULT_CHARS = 100_000


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


@frozen
class ArgumentError:
    """Arguments that were refused: the body was not entered. A value, since a model's mistake is not an exception.

    Args:
        tool: the tool's name.
        problems: every fault that was found.
        usage: the parameters, in short.
    """

    tool: str
    problems: tuple[Problem, ...]
    usage: str = ""

    def __str__(self) -> str:
        text = f"the arguments of {self.tool} are wrong: {checking.explain(self.problems)}"
        return f"{text}. Parameters: {self.usage}" if 0 < len(self.usage) <= _LONGEST_USAGE else text


class Bound:
    """Arguments that fit a tool, ready to call its body; a handle, not a value.

    Attributes:
        tool: the tool.
        key: the dedup key of the call, made of its data.
    """

    __slots__ = ("_data", "_given", "_values", "key", "tool")

    def __init__(
        self, tool: Tool[..., Any], key: str, values: Any, given: Mapping[str, Any], data: FrozenDict[str, Any] | None
    ) -> None:
        self.tool, self.key = tool, key
        self._values, self._given, self._data = values, given, data

    @property
    def data(self) -> FrozenDict[str, Any]:
        """The canonical JSON of the arguments as the body gets them, the defaults that the schema shows filled in."""
        if self._data is None:
            parameters = self.tool.parameters
            values = parameters.convert(self._given) if self._values is None else self._values
            self._data = freeze(parameters.form(values, self._given))
        return self._data

    def rebind(self, data: Mapping[str, Any]) -> Bound | ArgumentError:
        """The tool bound to other data; what is the same in both keeps the form in which it was given."""
        mine, given, form = self.data, self._given, canonical.canonical
        same = {name for name, each in data.items() if name in mine and form(each) == form(mine[name])}
        kept = {name: given[name] for name in same if name in given}
        return self.tool.bind(freeze({**{name: each for name, each in data.items() if name not in same}, **kept}))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the body gets them, defaults filled in."""
        return structs.asdict(self.tool.parameters.convert(self._given))

    def call(self, context: Any = None) -> Any:
        """Enter the body once; it may be entered again, and then finds its arguments as they were.

        Args:
            context: for the tool's context parameter, where it has one.

        Returns:
            What the body returns: for an async tool, an awaitable.
        """
        values, self._values = self._values, None
        if values is None:  # the first entry may have changed what it was given
            values = self.tool.parameters.convert(self._given)
        arguments = structs.asdict(values)
        tool, parameters = self.tool, self.tool.parameters
        if parameters.injected is not None:
            arguments[parameters.injected] = context
        positional = parameters.positional
        if positional:
            first = [arguments.pop(name) for name in positional]
            return tool.fn(*first, **arguments)
        return tool.fn(**arguments)

    def __repr__(self) -> str:
        return f"<Bound {self.tool.name} {self.key}>"


# With a __dict__: functools.update_wrapper's attributes (__name__, __doc__, __wrapped__) are kept beside the fields,
# so that help(), inspect.signature() and documentation tools see the function.
@frozen(kw_only=True, eq=False, slots=False, repr=False)
class Tool(Generic[P, R]):
    """A function that a model may call. Made by `locus.tools.definition`.

    Args:
        fn: the callable.
        spec: what the model reads: name, description, schema, examples.
        parameters: what the callable takes.
        is_async: calling it gives an awaitable; otherwise its body belongs in a worker thread.
        origin: ``"module.qualname"`` of the callable, for messages.
        effect: what may happen to a call that a crash interrupted: ``"pure"`` runs again, ``"keyed"`` runs again
            with the same idempotency key, ``"once"`` does not run again.
        receiver: it was defined in a class body and is called on an instance.
        idempotent, timeout, ask_on_unknown, max_result_chars, reads, targets, egress: see `ToolOptions`.
    """

    fn: Callable[P, R]
    spec: ToolSpec
    parameters: Parameters
    is_async: bool
    origin: str
    idempotent: Idempotent = False
    effect: Effect = "once"
    timeout: float | None = None
    ask_on_unknown: bool = False
    max_result_chars: int = RESULT_CHARS
    receiver: bool = False
    reads: Reads = "untrusted"
    targets: tuple[str, ...] | None = None
    egress: bool | None = None
    #: The label of its results.
    label: Label = field(init=False)

    def __attrs_post_init__(self) -> None:
        sources = frozenset((self.name,) if self.reads == "untrusted" else ())
        object.__setattr__(self, "label", Label(self.reads, sources))
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            value = getattr(self.fn, name, None)
            if value is not None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "__wrapped__", self.fn)

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    @property
    def description(self) -> str:
        """What the model reads of it."""
        return self.spec.description

    @property
    def examples(self) -> tuple[ToolExample, ...]:
        """Worked examples, for models that need them."""
        return self.spec.examples

    @property
    def context_parameter(self) -> str | None:
        """The name of the parameter that gets the `ToolContext`, or None."""
        return self.parameters.injected

    @cached_property
    def is_egress(self) -> bool:
        """Whether a call sends something out."""
        if self.egress is not None:
            return self.egress
        return any(
            name.lower() in _URL_NAMES
            or (isinstance(each, Mapping) and str(each.get("format", "")).startswith(_URL_FORMATS))
            for name, each in self.spec.properties.items()
        )

    def find_targets(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """The parameters that say whom or what a call reaches, of those that it gives."""
        if self.targets is not None:
            return self.targets
        return tuple(arguments) if self.effect != "pure" or self.is_egress else ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were not a tool."""
        return self.fn(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """A tool defined in a class body binds to the instance it is read from, as a method does."""
        if not self.receiver or instance is None:
            return self
        return evolve(self, fn=MethodType(self.fn, instance), receiver=False)

    def __repr__(self) -> str:
        return f"<Tool {self.name} from {self.origin}>"

    def bind(self, arguments: Mapping[str, Any]) -> Bound | ArgumentError:
        """Check arguments and make them ready for the body. Never raises, whatever a model made up.

        Args:
            arguments: plain data, frozen or not.

        Returns:
            The bound arguments with their dedup key, or everything that is wrong with them.
        """
        try:
            return self._make_bound(self.parameters.convert(arguments), arguments)
        except Exception:  # noqa: BLE001  a parameter's own class may raise anything
            return self._bind_leniently(arguments)

    def _make_bound(self, values: Any, given: Mapping[str, Any]) -> Bound:
        parameters = self.parameters
        if parameters.exact:
            return Bound(self, canonical.exact_key(self.spec.name, values), values, given, None)
        data = freeze(parameters.form(values, given))
        return Bound(self, canonical.call_key(self.name, data), values, given, data)

    def _bind_leniently(self, arguments: Mapping[str, Any]) -> Bound | ArgumentError:
        parameters = self.parameters
        try:
            better = freeze(parameters.repair(arguments))
            return self._make_bound(parameters.convert(better), better)
        except checking.ValidationError as e:
            return ArgumentError(self.name, e.problems, self.usage)
        except Exception as e:  # noqa: BLE001  as in bind
            return ArgumentError(self.name, (checking.Problem("$", str(e) or type(e).__name__),), self.usage)

    @property
    def usage(self) -> str:
        """The parameters on one line, as in ``query (string), limit (integer, optional)``."""
        schema = self.spec.parameters
        required = schema.get("required", ())
        return (
            "none"
            if not self.spec.properties
            else ", ".join(
                f"{name} ({jsonschema.describe(each, schema)}{'' if name in required else ', optional'})"
                for name, each in self.spec.properties.items()
            )
        )
