"""`HookManager`: the hooks of one agent, compiled for the loop, with what its plugins contribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from locus.core.errors import PluginError
from locus.core.frozen import EMPTY, frozen
from locus.core.lazy import Lazy
from locus.hooks.table import NO_HOOKS, HookTable
from locus.plugins.report import PluginReport

if TYPE_CHECKING:
    from locus.hooks import compile as compiler
    from locus.hooks.compile import Contribution
    from locus.plugins.activation import ActivePlugin
else:
    # pluggy and the specifications: an agent without hooks needs neither.
    compiler = Lazy("locus.hooks.compile")


@frozen(kw_only=True)
class HookManager:
    """The hooks of one agent, ready to be called.

    Args:
        table: what the loop calls.
        contributed: what plugins contribute to the agent, by hook, each in the order of the plugins.
        reports: each plugin that was asked for and each hook that was passed in code, in order.
    """

    table: HookTable = NO_HOOKS
    contributed: Mapping[str, tuple[Contribution, ...]] = EMPTY
    reports: tuple[PluginReport, ...] = ()

    @classmethod
    def build(
        cls,
        plugins: Sequence[ActivePlugin] = (),
        hooks: Sequence[object] = (),
        *,
        reports: Iterable[PluginReport] = (),
    ) -> HookManager:
        """Check, order and compile.

        Args:
            plugins: the chosen plugins in order, see `locus.plugins.activation`.
            hooks: what the user passed, in order: `Hook` instances, objects with marked methods, modules.
                Their hooks come after those of all plugins.
            reports: of plugins that were asked for and are not among ``plugins``.

        Raises:
            HookSpecError: a hook that was passed in code, or of a plugin that must not be missing, is
                unknown, unmarked, or takes other arguments than the specification; or what it contributes
                is not what was asked for. Such a plugin is otherwise left out as a whole and reported.
        """
        if not (plugins or hooks):
            return cls(table=NO_HOOKS, reports=tuple(reports))
        table, contributed, built = compiler.compile_hooks(plugins, hooks)
        names = {report.name for report in built}
        return cls(table=table, contributed=contributed, reports=(*built, *(r for r in reports if r.name not in names)))

    def collect(self, hook: str) -> tuple[tuple[Contribution, ...], tuple[PluginError, ...]]:
        """What plugins contribute through a hook that is not asked when the agent is built.

        Args:
            hook: ``"locus_register_commands"``.

        Returns:
            The contributions in order, and the errors of plugins that failed.
        """
        found: list[Contribution] = []
        errors: list[PluginError] = []
        for impl in self.table.impls(hook):
            try:
                found += compiler.collect_from(impl)
            except PluginError as e:
                errors.append(e)
        return tuple(found), tuple(errors)
