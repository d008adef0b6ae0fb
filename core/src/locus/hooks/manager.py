"""`HookManager`: the hooks of one agent, checked and ordered with pluggy and compiled for the loop.

pluggy is synchronous: over coroutines its ``firstresult`` and wrappers are silently wrong, one raising
implementation skips the rest, and a call costs ten times a loop over a tuple. So it is used for what it is
good at, and thrown away when the agent is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any

import pluggy

from locus.core.errors import HookSpecError, PluginError, closest
from locus.core.events import event_types
from locus.core.frozen import frozen
from locus.hooks.adapt import Adapted, adapt, name_of
from locus.hooks.compile import Owner, compile_impl, positional
from locus.hooks.contribute import Contribution, Contributions, contributed_by
from locus.hooks.names import PROJECT, observer_hook
from locus.hooks.specs import HOOKS, HookInfo, observer_info
from locus.hooks.table import NO_HOOKS, HookTable, Impl
from locus.plugins.active import ActivePlugin
from locus.plugins.report import PluginReport

__all__ = ["HookManager"]

_EVENTS = "locus_register_events"
_PRICES = "locus_register_prices"
_AT_BUILD = ("locus_register_tools", "locus_register_conditions", "locus_register_reflect_policies", _PRICES)
_OBSERVE = observer_hook("")


class _Checker(pluggy.PluginManager):
    """pluggy over `Adapted` objects, which know their options."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        return plugin.opts.get(name) if isinstance(plugin, Adapted) else super().parse_hookimpl_opts(plugin, name)


@frozen(kw_only=True)
class _Entry:
    """A plugin, or a hook that was passed in code, on its way into the table."""

    owner: Owner
    sources: tuple[object, ...]
    fatal: bool
    report: PluginReport


@frozen(kw_only=True)
class HookManager:
    """The hooks of one agent, ready to be called.

    Args:
        table: what the loop calls.
        contributed: what plugins contribute to the agent.
        reports: each plugin that was asked for and each hook that was passed in code, in order.
    """

    table: HookTable = NO_HOOKS
    contributed: Contributions = Contributions()
    reports: tuple[PluginReport, ...] = ()

    @classmethod
    def build(
        cls,
        plugins: Sequence[ActivePlugin] = (),
        hooks: Sequence[object] = (),
        *,
        kernel: Sequence[object] = (),
        reports: Iterable[PluginReport] = (),
    ) -> HookManager:
        """Check, order and compile.

        Args:
            plugins: the chosen plugins in order, see `locus.plugins.activation`.
            hooks: what the user passed, in order: `Hook` instances, objects with marked methods, modules.
                Their hooks come after those of all plugins.
            kernel: objects or modules with the kernel's own nodes; they come last whatever is marked.
            reports: of plugins that were asked for and are not among ``plugins``.

        Raises:
            HookSpecError: a hook that was passed in code, or of a plugin that must not be missing, is
                unknown, unmarked, or takes other arguments than the specification; or what it contributes
                is not what was asked for. Such a plugin is otherwise left out as a whole and reported.
        """
        if not (plugins or hooks or kernel):
            return cls(table=NO_HOOKS, reports=tuple(reports))
        builder = _Builder()
        for entry in _entries(plugins, hooks, kernel):
            builder.adapt(entry)
        builder.specify()
        for entry in builder.entries:
            builder.compile(entry)
        built = tuple(builder.reports())
        contributed = builder.contributions()
        prices = tuple(Impl(call=c.value, plugin=c.plugin, hook=_PRICES) for c in contributed.prices)
        return cls(
            table=HookTable(builder.hooks(), prices),
            contributed=contributed,
            reports=(*built, *(r for r in reports if r.name not in {b.name for b in built})),
        )

    def collect(self, hook: str) -> tuple[tuple[Contribution, ...], tuple[PluginError, ...]]:
        """What plugins contribute through a hook that is not asked when the agent is built.

        Args:
            hook: ``"locus_register_commands"``.

        Returns:
            The contributions in order, and the errors of plugins that could not say.
        """
        found: list[Contribution] = []
        errors: list[PluginError] = []
        for impl in self.table.impls(hook):
            try:
                found += contributed_by(impl)
            except PluginError as e:
                errors.append(e)
        return tuple(found), tuple(errors)


def _entries(plugins: Sequence[ActivePlugin], hooks: Sequence[object], kernel: Sequence[object]) -> list[_Entry]:
    entries: list[_Entry] = []
    for plugin in plugins:
        manifest = plugin.manifest
        owner = Owner(
            name=manifest.name,
            place=len(entries),
            guard=manifest.guard,
            timeout=manifest.hook_timeout,
            buffers=manifest.buffers,
        )
        report = PluginReport(name=manifest.name, version=plugin.version, guard=manifest.guard)
        entries.append(_Entry(owner=owner, sources=plugin.instances, fatal=plugin.fatal, report=report))
    taken = {entry.owner.name for entry in entries}
    for hook in hooks:
        name = wanted = name_of(hook)
        again = 1
        while name in taken:
            again += 1
            name = f"{wanted}#{again}"
        taken.add(name)
        report = PluginReport(name=name, kind="hook", guard=getattr(hook, "guard", False) is True)
        owner = Owner(name=name, place=len(entries))
        entries.append(_Entry(owner=owner, sources=(hook,), fatal=True, report=report))
    if kernel:
        owner = Owner(name="", place=len(entries), kernel=True)
        entries.append(_Entry(owner=owner, sources=tuple(kernel), fatal=True, report=PluginReport(name="")))
    return entries


class _Builder:
    """The steps of `HookManager.build`; each drops a plugin that fails it, as a whole."""

    def __init__(self) -> None:
        self.checker = _Checker(PROJECT)
        self.infos: dict[str, HookInfo] = {}
        self.entries: list[_Entry] = []
        self._adapted: dict[str, list[Adapted]] = {}
        self._impls: dict[str, list[Impl]] = {}
        self._contributed: dict[str, dict[str, tuple[Contribution, ...]]] = {}
        self._reports: list[PluginReport] = []

    def reports(self) -> list[PluginReport]:
        """Of every plugin and hook, but not of the kernel's own nodes."""
        return [report for report in self._reports if report.name]

    def hooks(self) -> dict[str, tuple[Impl, ...]]:
        """All implementations by hook, in order."""
        by_hook: dict[str, list[Impl]] = {}
        for impls in self._impls.values():
            for impl in impls:
                by_hook.setdefault(impl.hook, []).append(impl)
        return {hook: tuple(sorted(impls, key=attrgetter("order"))) for hook, impls in by_hook.items()}

    def contributions(self) -> Contributions:
        """What the plugins that are left contribute."""
        by_kind: dict[str, list[Contribution]] = {}
        for contributed in self._contributed.values():
            for hook, values in contributed.items():
                by_kind.setdefault(hook.removeprefix(f"{PROJECT}_register_"), []).extend(values)
        return Contributions(**{kind: tuple(values) for kind, values in by_kind.items()})

    def adapt(self, entry: _Entry) -> None:
        """Read what the hook objects implement, and learn the plugin's own events."""
        name = entry.owner.name
        try:
            adapted = [adapt(self.checker, source, name) for source in entry.sources]
            for one in adapted:
                function = getattr(one, _EVENTS, None)
                if function is not None:  # before anything is checked: its other hooks may be about these events
                    events = contributed_by(Impl(call=function, plugin=name, hook=_EVENTS))
                    self._contributed.setdefault(name, {})[_EVENTS] = events
        except PluginError as e:
            self._drop(entry, e)
        else:
            self._adapted[name] = adapted
            self.entries.append(entry)

    def specify(self) -> None:
        """Tell pluggy every hook there is, those of registered events included."""
        self.infos = dict(HOOKS)
        for event_type in event_types():
            info = observer_info(event_type)
            self.infos[info.name] = info
        specs = ModuleType("specs")
        vars(specs).update({name: info.function for name, info in self.infos.items()})
        self.checker.add_hookspecs(specs)

    def compile(self, entry: _Entry) -> None:
        """Check one plugin's hooks against the specifications and make them callable."""
        name = entry.owner.name
        registered: list[Adapted] = []
        try:
            impls = []
            for index, adapted in enumerate(self._adapted[name]):
                registered.append(adapted)
                impls += self._compile(entry.owner, index, adapted)
            for impl in impls:
                if impl.hook in _AT_BUILD:
                    self._contributed.setdefault(name, {})[impl.hook] = contributed_by(impl)
        except PluginError as e:
            for adapted in registered:
                if self.checker.is_registered(adapted):
                    self.checker.unregister(adapted)
            self._drop(entry, e)
        else:
            self._impls[name] = impls
            self._reports.append(entry.report)

    def _compile(self, owner: Owner, index: int, adapted: Adapted) -> list[Impl]:
        try:
            self.checker.register(adapted, f"{owner.name}:{index}")
            self.checker.check_pending()
        except pluggy.PluginValidationError as e:
            raise self._explain(adapted, e) from e
        impls = []
        for caller in self.checker.get_hookcallers(adapted) or ():
            if caller.name in self.infos:  # what is not there was marked optional
                found = [i for i in caller.get_hookimpls() if i.plugin is adapted]
                impls += [compile_impl(self.infos[caller.name], i, owner, index) for i in found]
        return impls

    def _explain(self, adapted: Adapted, error: pluggy.PluginValidationError) -> HookSpecError:
        """Which hook is wrong, and what was meant."""
        for hook, written in adapted.shown.items():
            if hook in self.infos:
                positional(getattr(adapted, hook), self.infos[hook], written, adapted.name)
            elif not adapted.opts[hook].get("optionalhook"):
                return HookSpecError(adapted.name, f"{written} is no hook; {self._meant(written)}")
        return HookSpecError(adapted.name, " ".join(str(error).split()))

    def _meant(self, written: str) -> str:
        events = [name.removeprefix(_OBSERVE) for name in self.infos if name.startswith(_OBSERVE)]
        short = written.startswith("on_")
        near = closest(written, [*(f"on_{event}" for event in events), "on_tool_call"] if short else self.infos)
        if near:
            return f"did you mean {near!r}?"
        if short or written.startswith(_OBSERVE):
            return "no such event is known: import or enable the plugin that defines it"
        return "the hooks there are stand in locus.hooks.specs"

    def _drop(self, entry: _Entry, error: PluginError) -> None:
        if entry.fatal:
            raise error
        self._contributed.pop(entry.owner.name, None)
        self._reports.append(
            PluginReport(name=entry.report.name, version=entry.report.version, status="failed", detail=str(error))
        )
