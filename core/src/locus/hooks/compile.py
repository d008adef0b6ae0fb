"""The hook compiler: from hook objects to the table of callables that the loop calls.

pluggy is the registry, the checker of signatures and the order; the calls are ours. pluggy is synchronous: over
coroutines its ``firstresult`` and wrappers are silently wrong, one implementation that raises skips the others, and a
call costs ten times a loop over a tuple. So it is used for what it is good at, and thrown away when the agent is built.

The steps, and why they come in this order:

1. *Adapt* each hook object: methods of a `Hook`, marked methods and functions of a module become one form, `Adapted`.
   The events that a plugin registers are learned here, before anything is checked, because hooks of any plugin may be
   about these events.
2. *Specify*: pluggy gets every hook that exists now, with one for each registered event.
3. *Compile* plugin by plugin: pluggy compares names and arguments with the specification, then each implementation
   becomes an `Impl`: a callable that takes all arguments of the hook by position. An implementation may name any of
   them in any order; the adapter that makes up the difference is chosen once; where the names agree, none is used.

What holds at each step:

- A plugin is in or out as a whole. If one of its hooks is wrong, all of them are unregistered and it is reported; a
  hook that was passed in code, and a plugin that must not be missing, raises instead.
- Whether a function is async is decided here, by what is called and not by what a decorator hides, so that the loop
  never asks. What would be silently skipped (a generator, a method ``locus_*`` without its mark) is refused, with the
  place and the remedy.
- The order is total: ``tryfirst``, then unmarked, then ``trylast``; among equals the order of the plugins, then of a
  plugin's hook objects. pluggy's own order is not used, because it depends on the order of
  registration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy
from attrs import evolve
from pluggy import HookImpl

from locus.core.errors import HookSpecError, PluginError, closest
from locus.core.events import Event, event_types, register_event
from locus.core.frozen import frozen
from locus.hooks.adapt import Adapted, adapt, name_of
from locus.hooks.specs import HOOKS, HookInfo, observer_info
from locus.hooks.table import PROJECT, HookTable, Impl, observer_hook
from locus.plugins.report import PluginReport

if TYPE_CHECKING:
    from locus.plugins.activation import ActivePlugin

_PRICES = "locus_register_prices"
_AT_BUILD = ("locus_register_tools", "locus_register_conditions", "locus_register_reflect_policies", _PRICES)
_OBSERVE = observer_hook("")
_KINDS = inspect.Parameter

#: The hook that is asked before the others: these may be about the events that it registers.
EVENTS = "locus_register_events"

# `Hook.on_event` hears everything and `Hook.on_tool_call` decides: an event of that name could not be heard.
_RESERVED = frozenset({"event", "tool_call"})


@frozen
class Contribution:
    """One contributed value and who contributed it."""

    plugin: str
    value: Any


def compile_hooks(
    plugins: Sequence[ActivePlugin], hooks: Sequence[object]
) -> tuple[HookTable, dict[str, tuple[Contribution, ...]], tuple[PluginReport, ...]]:
    """Check, order and compile; the arguments are those of `HookManager.build`.

    Returns:
        What the loop calls, what plugins contribute by hook, and the reports of all plugins and hooks in order.

    Raises:
        HookSpecError: see `HookManager.build`.
    """
    compiler = _Compiler()
    adapted = [entry for entry in _entries(plugins, hooks) if compiler.adapt(entry)]
    compiler.specify()
    for entry in adapted:
        compiler.compile(entry)
    contributed = compiler.contributed
    prices = tuple(Impl(call=c.value, plugin=c.plugin, hook=_PRICES) for c in contributed.get(_PRICES, ()))
    return HookTable(compiler.hooks(), prices), contributed, tuple(compiler.reports)


class _Checker(pluggy.PluginManager):
    """pluggy over `Adapted` objects, which know their options."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        return plugin.opts.get(name) if isinstance(plugin, Adapted) else super().parse_hookimpl_opts(plugin, name)


@frozen(kw_only=True)
class _Entry:
    """A plugin, or a hook that was passed in code, on its way into the table.

    Args:
        report: what is said of it when all goes well.
        place: its place among all, counted from 0.
        sources: its hook objects.
        fatal: what is wrong with it is raised.
        timeout: seconds, or None.
        buffers: see `Impl`.
    """

    report: PluginReport
    place: int
    sources: tuple[object, ...]
    fatal: bool = True
    timeout: float | None = None
    buffers: bool = False

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.report.name


def _entries(plugins: Sequence[ActivePlugin], hooks: Sequence[object]) -> list[_Entry]:
    entries = [
        _Entry(
            report=PluginReport(name=plugin.manifest.name, version=plugin.version, guard=plugin.manifest.guard),
            place=place,
            sources=plugin.instances,
            fatal=plugin.fatal,
            timeout=plugin.manifest.hook_timeout,
            buffers=plugin.manifest.buffers,
        )
        for place, plugin in enumerate(plugins)
    ]
    taken = {entry.name for entry in entries}
    for place, hook in enumerate(hooks, len(entries)):
        wanted = name_of(hook)
        names = (wanted, *(f"{wanted}#{n}" for n in range(2, len(hooks) + 2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        report = PluginReport(name=name, kind="hook", guard=getattr(hook, "guard", False) is True)
        entries.append(_Entry(report=report, place=place, sources=(hook,)))
    return entries


class _Compiler:
    """The steps; each drops a plugin that fails it, as a whole.

    Attributes:
        contributed: what the plugins that are left contribute, by hook.
        reports: of all plugins and hooks, in order.
    """

    def __init__(self) -> None:
        self.checker = _Checker(PROJECT)
        self.infos: dict[str, HookInfo] = {}
        self.contributed: dict[str, tuple[Contribution, ...]] = {}
        self.reports: list[PluginReport] = []
        self._adapted: dict[str, list[Adapted]] = {}
        self._impls: list[Impl] = []

    def hooks(self) -> dict[str, tuple[Impl, ...]]:
        """All implementations by hook, in order."""
        by_hook: dict[str, list[Impl]] = {}
        for impl in sorted(self._impls, key=attrgetter("order")):
            by_hook.setdefault(impl.hook, []).append(impl)
        return {hook: tuple(impls) for hook, impls in by_hook.items()}

    def adapt(self, entry: _Entry) -> bool:
        """Read what the hook objects implement, and learn the plugin's own events; False when that fails."""
        try:
            adapted = [adapt(self.checker, source, entry.name) for source in entry.sources]
            for one in adapted:
                function = getattr(one, EVENTS, None)
                if function is not None:  # before anything is checked: its other hooks may be about these events
                    self._contribute(collect_from(Impl(call=function, plugin=entry.name, hook=EVENTS)), EVENTS)
        except PluginError as e:
            self._drop(entry, e)
            return False
        self._adapted[entry.name] = adapted
        return True

    def specify(self) -> None:
        """Tell pluggy of every hook that is implemented what it takes; it reads a specification in 10 us."""
        self.infos = dict(HOOKS)
        for event_type in event_types():
            info = observer_info(event_type)
            self.infos[info.name] = info
        specs = ModuleType("specs")
        implemented = {name for found in self._adapted.values() for adapted in found for name in adapted.opts}
        if known := implemented & self.infos.keys():
            vars(specs).update({name: self.infos[name].function for name in known})
            self.checker.add_hookspecs(specs)

    def compile(self, entry: _Entry) -> None:
        """Check one plugin's hooks against the specifications and make them callable."""
        impls: list[Impl] = []
        try:
            for index, adapted in enumerate(self._adapted[entry.name]):
                impls += self._compile(entry, index, adapted)
            contributed = {impl.hook: collect_from(impl) for impl in impls if impl.hook in _AT_BUILD}
        except PluginError as e:
            for adapted in self._adapted[entry.name]:
                if self.checker.is_registered(adapted):
                    self.checker.unregister(adapted)
            self._drop(entry, e)
            return
        self._impls += impls
        self.reports.append(entry.report)
        for hook, values in contributed.items():
            self._contribute(values, hook)

    def _contribute(self, values: tuple[Contribution, ...], hook: str) -> None:
        self.contributed[hook] = (*self.contributed.get(hook, ()), *values)

    def _compile(self, entry: _Entry, index: int, adapted: Adapted) -> list[Impl]:
        try:
            self.checker.register(adapted, f"{entry.name}:{index}")
            self.checker.check_pending()
        except pluggy.PluginValidationError as e:
            raise self._explain(adapted, e) from e
        impls = []
        for caller in self.checker.get_hookcallers(adapted) or ():
            if caller.name in self.infos:  # what is not there was marked optional
                found = [i for i in caller.get_hookimpls() if i.plugin is adapted]
                impls += [_compile_impl(self.infos[caller.name], i, entry, index) for i in found]
        return impls

    def _explain(self, adapted: Adapted, error: pluggy.PluginValidationError) -> HookSpecError:
        """Which hook is wrong, and what was meant."""
        for hook, written in adapted.names.items():
            if hook in self.infos:
                _pass_by_position(getattr(adapted, hook), self.infos[hook], written, adapted.name)
            elif not adapted.opts[hook].get("optionalhook"):
                return HookSpecError(adapted.name, f"{written} is not a hook; {self._suggest(written)}")
        return HookSpecError(adapted.name, " ".join(str(error).split()))

    def _suggest(self, written: str) -> str:
        events = [name.removeprefix(_OBSERVE) for name in self.infos if name.startswith(_OBSERVE)]
        short = written.startswith("on_")
        near = closest(written, [*(f"on_{event}" for event in events), "on_tool_call"] if short else self.infos)
        if near:
            return f"did you mean {near!r}?"
        if short or written.startswith(_OBSERVE):
            return "no event has that name: import or enable the plugin that defines it"
        return "locus.hooks.specs lists the hooks"

    def _drop(self, entry: _Entry, error: PluginError) -> None:
        if entry.fatal:
            raise error
        if EVENTS in self.contributed:
            self.contributed[EVENTS] = tuple(c for c in self.contributed[EVENTS] if c.plugin != entry.name)
        self.reports.append(evolve(entry.report, status="failed", detail=str(error)))


#: These apply in child runs even if they are not guards; otherwise delegating would be a way around them.
_INHERITED = frozenset({"locus_decide_tool_call", "locus_label_result"})


def _compile_impl(info: HookInfo, impl: HookImpl, entry: _Entry, index: int) -> Impl:
    """One implementation, ready to be called; ``index`` is that of the hook object among its owner's.

    Raises:
        HookSpecError: it is a generator, or async where only sync works, or takes an argument that the hook has not.
    """
    adapted: Adapted = impl.plugin  # type: ignore[assignment]
    label = adapted.names[info.name]
    method, takes = adapted.direct.get(info.name, (None, 0))
    function = impl.function if method is None else method
    _refuse_generators(function if info.family == "session" else inspect.unwrap(function), label, entry.name)
    is_async = _is_async(function)
    if is_async and info.family in ("register", "check", "result"):
        when = "after a run" if info.family == "result" else "while an agent is built"
        raise HookSpecError(entry.name, f"{label} is async; it is called {when} and must be sync")
    if is_async and info.family == "session":
        raise HookSpecError(
            entry.name,
            f"{label} is async; it returns an async context manager: make it one with contextlib.asynccontextmanager",
        )
    if method is None:
        call = _pass_by_position(function, info, label, entry.name)
    else:
        call = function if takes == 2 else _first(function)
    source = adapted.source
    own_timeout = getattr(source, "hook_timeout", None)
    timeout = _seconds(own_timeout if own_timeout is not None else entry.timeout, entry.name)
    rank = 0 if impl.tryfirst else 2 if impl.trylast else 1
    guard = entry.report.guard or getattr(source, "guard", False) is True
    return Impl(
        call=call,
        plugin=entry.name,
        hook=info.name,
        guard=guard,
        is_inherited=info.name in _INHERITED
        or (guard and info.family in ("session", "observe", "decide", "review", "wrap")),
        source=source,
        is_async=is_async,
        timeout=timeout,
        buffers=entry.buffers or getattr(source, "buffers", False) is True,
        hears_chunks=getattr(source, "hears_chunks", True) is not False,
        order=(rank, entry.place, index),
    )


def _refuse_generators(function: Callable[..., Any], label: str, name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise HookSpecError(
            name,
            f"{label} is a generator; write a plain function, and use locus_wrap_... to put code around something, "
            "or locus_run_session with contextlib.asynccontextmanager to hold something open",
        )


def _is_async(function: Callable[..., Any]) -> bool:
    # `unwrap` would look through a sync decorator at the async function behind it: what counts is what is called.
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(called)


def _seconds(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise HookSpecError(name, f"hook_timeout must be a number of seconds above 0, or None, got {value!r}")
    return float(value)


def _pass_by_position(function: Callable[..., Any], info: HookInfo, label: str, name: str) -> Callable[..., Any]:
    """A callable that takes all of a hook's arguments by position and passes on the ones that were named.

    Raises:
        HookSpecError: the function takes an argument that the hook does not have.
    """
    gives = info.arguments
    by_place: list[int] = []
    by_name: dict[str, int] = {}
    skipped = False  # a parameter keeps its default, so those behind it must be passed by name
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD):
            raise HookSpecError(name, f"{label} takes {parameter}; name the arguments it uses, of ({', '.join(gives)})")
        if parameter.name in gives:
            if skipped or parameter.kind is _KINDS.KEYWORD_ONLY:
                by_name[parameter.name] = gives.index(parameter.name)
            else:
                by_place.append(gives.index(parameter.name))
        elif parameter.default is _KINDS.empty:
            near = closest(parameter.name, gives)
            hint = f"; did you mean {near!r}?" if near else ""
            raise HookSpecError(name, f"{label} takes {parameter.name!r}; the hook has ({', '.join(gives)}){hint}")
        else:
            skipped = True
    return _adapter(function, len(gives), by_place, by_name)


def _adapter(
    function: Callable[..., Any], given: int, by_place: list[int], by_name: dict[str, int]
) -> Callable[..., Any]:
    if not by_name and by_place == list(range(given)):
        return function
    if not by_name and given == 2 and by_place == [0]:
        return _first(function)

    def call(*arguments: Any) -> Any:
        named = {name: arguments[i] for name, i in by_name.items()}
        return function(*[arguments[i] for i in by_place], **named)

    return call


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(first: Any, _: Any) -> Any:
        return function(first)

    return call


def collect_from(impl: Impl) -> tuple[Contribution, ...]:
    """What one implementation of a ``locus_register_...`` hook contributes.

    Raises:
        HookSpecError: it raised, or returned what was not asked for.
    """
    try:
        returned = impl.call()
        values = _values(impl, returned)
    except HookSpecError:
        raise
    except Exception as e:
        raise HookSpecError(impl.plugin, f"{impl.hook} raised {type(e).__name__}: {e}") from e
    fits, expected = _EXPECTED.get(impl.hook, (lambda _: True, ""))
    for value in values:
        if not fits(value):
            raise HookSpecError(impl.plugin, f"{impl.hook} returned {value!r:.80}; return {expected}")
        if impl.hook == EVENTS:
            _register(impl, value)
    return tuple(Contribution(impl.plugin, value) for value in values)


def _values(impl: Impl, returned: Any) -> tuple[Any, ...]:
    if returned is None:
        return ()
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | Mapping):
        if hasattr(returned, "close"):  # a coroutine that is not awaited would warn
            returned.close()
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {returned!r:.80}; return a list, or None")
    return tuple(returned)


def _register(impl: Impl, event_type: type[Event]) -> None:
    try:
        register_event(event_type)
    except ValueError as e:
        raise HookSpecError(impl.plugin, f"{impl.hook}: {e}; give the class another name") from e
    if event_type.type in _RESERVED:
        raise HookSpecError(
            impl.plugin, f"{impl.hook}: the event type {event_type.type!r} is reserved; rename the class"
        )


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


_EXPECTED: dict[str, tuple[Callable[[object], bool], str]] = {
    EVENTS: (lambda value: isinstance(value, type) and issubclass(value, Event), "classes derived from Event"),
    "locus_register_conditions": (lambda value: isinstance(value, type), "classes of conditions"),
    "locus_register_reflect_policies": (_is_function, "functions (state) -> str | None"),
    "locus_register_prices": (_is_function, "functions (model, answered, usage, at) -> float | None"),
}
