"""The hooks: every one that the kernel has, a family a section, and the table of all of them.

A hook is a plain function whose signature and docstring are its specification; pluggy checks every
implementation against it, by name and by argument. The families:

Register: what a plugin contributes to an agent.

Called once, synchronously, while the agent is built. A plugin that raises here, or returns what is not
asked for, is not activated at all and reported. None means "nothing".

Check: whether an agent has what a plugin's settings name.

Called once, synchronously, when an agent is built. What it raises is the error of building the agent. Where plugins
bring tools when a run begins, it is called at the beginning of each run instead, and one that raises is reported.

Session: what a plugin holds open for as long as a run is under way, and the tools that come of it.

A plain function that gives an async context manager, such as one made with `contextlib.asynccontextmanager`. It is
entered before a segment's first event and left after its last one, both in a task of its own: it may hold a task group
open, and what fails or hangs in it later is reported and does not touch the run. The run's own errors are not raised in
it. What fails while it opens is raised by the run, which then has not begun.

Observe: every event, as it is emitted.

There is one for each event class, of the kernel and of plugins alike: ``locus_on_<type>``, with the arguments of
`locus_on_event`. Sync or async; an async one is awaited before the next event, at each chunk of an answer, too.
Return None, or a directive: Cancel beats Reject beats Retry beats Continue, the first of equals wins. `Reject` answers
``locus_on_tool_start`` alone, where it refuses this one call as a decider would; no `Retry` undoes it. A failing
observer is skipped and reported to everybody else; after its third failure in a run it is not called again. A failing
guard cancels the run.

Decide: may this tool call run, and where does the run go next?

Sync or async. A decider that fails does not let anything through: the call it was asked about is rejected.
A failing opinion about the route is dropped, because the router's own route is always a legal one.

Review: what goes into a run and what comes out of it, before it is committed.

Sync or async, every implementation in order. A failing one is skipped and reported, unless it is a guard:
then the run is cancelled.

Wrap: around a node, a model call or a tool call, like the skins of an onion.

Async. Call ``await call_next(value)`` once, several times (to try again) or not at all (to answer in its
place), and return what it returned or something of the same kind. What raises here becomes the node's
error, with a note that names the plugin, and is reported; what ``call_next`` raises is not the wrapper's
failure. A ``hook_timeout`` does not count the time spent in ``call_next``.

Result: what a caller gets of a run.

Called once for each `AgentResult`, synchronously, after the run; pure, so that all results of one run are the same. A
failing one is skipped and reported.

Node: the four nodes of the loop.

Sync or async, ``(state, run) -> state``. The kernel's own nodes are the last implementations of these hooks,
so a plugin replaces a node by answering before them, and leaves a case to them by returning None. A Think that
has an answer which needs no model, or another state to think on, hands it to `run.think`. What raises here is the
node's error, with a note that names the plugin, and is reported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from locus.core.events import Event, event_types
from locus.core.frozen import frozen
from locus.hooks.markers import Lifetime, spec
from locus.hooks.table import PROJECT, observer_hook

if TYPE_CHECKING:
    from locus.core.directives import Cancel, Continue, Decision, Directive, Verdict
    from locus.core.labels import Label, Reads
    from locus.core.messages import Message, ToolCall
    from locus.core.protocols import ReflectPolicy
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext
    from locus.models.prices import PriceSource
    from locus.models.protocol import ModelRequest, ModelResponse
    from locus.tools.definition import Tool
    from locus.tools.registry import ToolRegistry

F = TypeVar("F", bound=Callable[..., Any])


@frozen(kw_only=True)
class HookInfo:
    """One hook as it is specified.

    Args:
        name: such as ``"locus_on_think"``.
        family: ``"register"``, ``"check"``, ``"session"``, ``"observe"``, ``"decide"``, ``"review"``, ``"wrap"``,
            ``"result"`` or ``"node"``.
        arguments: the names of its arguments, in the order in which the loop passes them.
        lifetime: since when it exists, and when it goes.
        function: the specification itself; its docstring says what the hook is for.
    """

    name: str
    family: str
    arguments: tuple[str, ...]
    lifetime: Lifetime
    function: Callable[..., Any]


#: Every hook of the kernel by name, in the order in which the families are described.
HOOKS: dict[str, HookInfo] = {}


def observer_info(event_type: str) -> HookInfo:
    """The hook that hears one kind of event, be it the kernel's or a plugin's."""
    name = observer_hook(event_type)
    return HOOKS.get(name) or _info(name, "observe", locus_on_event)


def _info(name: str, family: str, function: Callable[..., Any]) -> HookInfo:
    code: Any = getattr(function, "__code__")  # noqa: B009 - a Callable has none, as far as types go
    return HookInfo(
        name=name,
        family=family,
        arguments=code.co_varnames[: code.co_argcount],
        lifetime=getattr(function, f"{PROJECT}_lifetime"),
        function=function,
    )


def _hook(family: str, since: tuple[int, int] = (1, 0)) -> Callable[[F], F]:
    """Mark a function as the specification of a hook, and put it into `HOOKS`."""

    def add(function: F) -> F:
        marked = spec(Lifetime(since=since))(function)
        HOOKS[function.__name__] = _info(function.__name__, family, marked)
        return marked

    return add


# --- register ---------------------------------------------------------------------------------------


@_hook("register")
def locus_register_tools() -> Iterable[object] | None:
    """Tools that the agent has beside its own, made with `locus.tools.definition`."""


@_hook("register")
def locus_register_events() -> Iterable[type[Event]] | None:
    """Event classes of the plugin; ``locus_on_<type>`` exists for each of them from then on."""


@_hook("register")
def locus_register_conditions() -> Iterable[type] | None:
    """Classes of termination conditions, so that a saved condition can be read back."""


@_hook("register")
def locus_register_commands() -> Iterable[object] | None:
    """Commands for the command line; only the command line asks for them."""


@_hook("register")
def locus_register_reflect_policies() -> Iterable[ReflectPolicy] | None:
    """Policies that say when Reflect runs: pure functions from the state to a reason, or to None.

    They become part of the router, which must stay pure: no clock, no I/O, no memory of earlier calls. The
    policies of all plugins are or-ed, in order, and the first reason is the one reported. Without a policy
    Reflect is never entered.
    """


@_hook("register")
def locus_register_prices() -> Iterable[PriceSource] | None:
    """Functions that know what model calls cost: ``(model, answered, usage, at)`` to dollars, or to None.

    ``answered`` is the model that answered, as the provider names it, or ``""``. They are asked after each call whose
    provider does not say itself what it cost, in order, until one knows; then comes the model's own ``price``. Also
    once, with a usage of two tokens, when an agent with a ``CostLimit`` is built. One that raises knows nothing, and
    is reported.
    """


# --- check ------------------------------------------------------------------------------------------


@_hook("check")
def locus_check_tools(tools: ToolRegistry) -> None:
    """All tools of the agent. Raise `ConfigError` if a setting names one that does not exist.

    Those of child runs are not among them.
    """


# --- session ----------------------------------------------------------------------------------------


@_hook("session")
def locus_run_session(run: RunContext) -> AbstractAsyncContextManager[Iterable[Tool[..., Any]] | None] | None:
    """Open what a run needs; what the context manager gives are tools for this run, or None.

    The list is kept in the run's state from then on: the model gets the same tools in each iteration, and after
    a resume, wherever that happens. A resumed run opens a session as well; its tools are matched with the list by their
    ``origin``, and of one that is not there any more each call is an error. A replay opens none. The session of a guard
    is opened in the children of its run as well, where it brings no tools.
    """


# --- observe ----------------------------------------------------------------------------------------


@_hook("observe")
def locus_on_event(event: Event, run: RunContext) -> Directive | None:
    """Any event. Of one hook, the method for the event's own kind is called before this one."""


for _event_class in event_types().values():
    if _event_class.__module__ == Event.__module__:
        HOOKS[observer_hook(_event_class.type)] = observer_info(_event_class.type)


# --- decide -----------------------------------------------------------------------------------------


@_hook("decide")
def locus_decide_tool_call(call: ToolCall, run: RunContext) -> Decision | Continue | None:
    """May this call run? Asked before its start event, for each call on its own.

    Every implementation is asked and the strictest answer wins: Cancel, Reject, Interrupt, Allow. Several questions
    are asked as one.
    `Reject` gives this one call an error result with the reason, `Interrupt` asks a person, `Cancel` ends
    the run; None and Continue mean Allow. An implementation that fails rejects the call. Deciders of a run hold in its
    children as well. ``call.provenance`` says where the arguments come from, see `locus.core.labels.Provenance`.
    """


@_hook("decide")
def locus_label_result(call: ToolCall, result: str, run: RunContext) -> Label | Reads | Mapping[str, Reads] | None:
    """Whose words may be in this result? Asked for each call whose body was entered, before the result is recorded.

    None means what the tool says. A `Label`, or a level, takes its place. A mapping is for a result that is JSON, from
    dotted paths to levels, with ``*`` for any key or index and ``""`` for the rest: ``{"*.sender": "own"}``. Of several
    patterns the longest counts, of several implementations the strictest. The result as a whole, which is what counts
    for the context, has the join of all; a level of a part says whether its values may be targets of calls. An
    implementation that fails makes the result untrusted.
    """


@_hook("decide")
def locus_decide_route(node: str, state: AgentState, proposed: str) -> str | None:
    """Another node to go to from ``node`` than the router's ``proposed`` one, or None.

    The first implementation that names another node wins; it must be one that can follow ``node``. Not asked
    when the run is about to terminate. The decision is recorded, so a replay does not ask again.
    """


# --- review -----------------------------------------------------------------------------------------


@_hook("review")
def locus_review_answer(answer: Message, state: AgentState, run: RunContext) -> Verdict | Cancel | None:
    """Is this answer accepted? Asked when the model answers with text and no tool call.

    `Revise` sends the answer back with feedback for the model (the feedback of several is joined, in one
    `plugin_message` of ``"review"``), `Cancel`
    ends the run; None and `Accept` accept it. Each implementation is a recorded step.
    """


@_hook("review")
def locus_filter_input(prompt: Message, run: RunContext) -> Message | str | Cancel | None:
    """The user's turn as it is to enter the conversation, before anything of it is saved.

    Of a prompt that is a transcript, each turn of the user's, in order; when one is refused, so are those after it.
    Each implementation gets what the one before made of it. A text replaces the whole content; None leaves
    the turn as it is; `Cancel` refuses it and ends the run. Events that it causes are emitted right after the
    `RunStartEvent`, which tells what it made of the turn.
    """


@_hook("review")
def locus_filter_progress(message: str, call: ToolCall, run: RunContext) -> str | None:
    """What a tool's body reports of its progress, before it is emitted; not asked without a listener.

    Each implementation gets what the one before made of it; None leaves it as it is. Of a message that a failing
    guard was asked about nothing is emitted.
    """


@_hook("review")
def locus_shorten_result(text: str, call: ToolCall, limit: int, run: RunContext) -> str | None:
    """What is kept of the text of a result, asked before the result is recorded, whatever its length.

    The text is whole, as the wrappers of the call left it; of several blocks each is asked about. The first answer that
    is not None counts. Of what is longer than ``limit``, the tool's ``max_result_chars``, beginning and end are kept.
    """


# --- wrap -------------------------------------------------------------------------------------------


@_hook("wrap")
def locus_wrap_node(
    call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
) -> Awaitable[AgentState]:
    """Around one node: ``await call_next(state)`` runs it."""
    return call_next(state)


@_hook("wrap")
def locus_wrap_model_call(
    call_next: Callable[[ModelRequest], Awaitable[ModelResponse]], request: ModelRequest, run: RunContext
) -> Awaitable[ModelResponse]:
    """Around one model call, inside its step: what comes out is what is recorded.

    ``call_next`` may be called again. It raises `BudgetExceeded`, and asks no model, when the attempts before have used
    up what the run may spend, or the run is cancelled.

    Set ``buffers = True`` on the hook or in the manifest when the whole answer must be seen before anything
    of it is shown; the kernel then holds the chunks back.
    """
    return call_next(request)


# What a tool call results in belongs to the loop; a wrapper hands it on.
@_hook("wrap")
def locus_wrap_tool_call(
    call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
) -> Awaitable[Any]:
    """Around one tool call, inside its step: ``await call_next(call)`` runs the body."""
    return call_next(call)


# --- result -----------------------------------------------------------------------------------------


@_hook("result")
def locus_parse_result(state: AgentState) -> object | None:
    """The value of ``AgentResult.parsed``, from the final state; the first that is not None counts.

    With None of all, the text of the answer is parsed by the output schema. Not asked while a question is open.
    """


# --- node -------------------------------------------------------------------------------------------


@_hook("node")
def locus_think(state: AgentState, run: RunContext) -> AgentState | None:
    """Think: ask the model. The first implementation that returns a state wins."""


@_hook("node")
def locus_execute(state: AgentState, run: RunContext) -> AgentState | None:
    """Execute: run the tool calls of the last answer. The first implementation that returns a state wins."""


@_hook("node")
def locus_reflect(state: AgentState, run: RunContext) -> AgentState | None:
    """Reflect: judge what was done. All implementations, in order, each on the state of the one before."""


@_hook("node")
def locus_terminate(state: AgentState, run: RunContext) -> AgentState | None:
    """Terminate: leave a valid history. The first implementation that returns a state wins."""
