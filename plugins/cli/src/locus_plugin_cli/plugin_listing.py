"""What there is to know about the installed plugins, as plain data: for tables and for ``--json``."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from locus.core.errors import LocusError, PluginError, UnknownName
from locus.core.events import event_types
from locus.hooks import HOOKS, HookInfo, HookManager, observer_info
from locus.plugin import Plugin
from locus.plugins import PluginReport, load
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line

__all__ = ["Row", "describe_plugin", "find_file", "find_hooks", "list_calls", "list_plugins"]


@frozen(kw_only=True)
class Row:
    """One plugin in the list.

    Args:
        name: of the plugin, or of what was asked for.
        version: of its distribution; or ``""``.
        status: ``"active"``, ``"available"``, ``"disabled"``, ``"missing"``, ``"failed"`` or ``"incompatible"``.
        guard: its hooks fail closed.
        summary: what it says of itself.
        detail: why it is not active.
        trace: the traceback behind that.
        distribution: what it was installed with; or ``""``.
        file: of its manifest, as far as that is known without importing it; or ``""``.
        provides: the kinds of things that it provides, such as ``"model"``.
    """

    name: str
    version: str = ""
    status: str = "available"
    guard: bool = False
    summary: str = ""
    detail: str = ""
    trace: str = ""
    distribution: str = ""
    file: str = ""
    provides: tuple[str, ...] = ()


def list_plugins(project: Project, manager: HookManager) -> list[Row]:
    """Every installed plugin, and every one that was asked for and is not installed.

    Args:
        project: the catalogue.
        manager: what the project's agents have; an empty one when they cannot be built.
    """
    reports: dict[str, PluginReport] = {report.name: report for report in project.catalogue.status()}
    for report in manager.reports:
        known = reports.get(report.name)
        if known is None or known.status == "available":
            reports[report.name] = report
    return [_row(project, report) for _, report in sorted(reports.items())]


def _row(project: Project, report: PluginReport) -> Row:
    summary = ""
    provides: tuple[str, ...] = ()
    with suppress(LocusError):
        manifest = project.catalogue.manifest(report.name)
        summary, provides = manifest.summary, tuple(manifest.provides)
    sources = project.catalogue.sources(report.name)
    return Row(
        name=report.name,
        version=report.version or project.catalogue.version(report.name),
        status=report.status,
        guard=report.guard,
        summary=summary,
        detail=one_line(report.detail),
        trace=report.trace,
        distribution=" and ".join(source.distribution for source in sources),
        file=find_file(sources[0].reference) if len(sources) == 1 else "",
        provides=provides,
    )


def find_file(reference: str) -> str:
    """The file of ``"package.module:name"``, found without importing it; ``""`` if it is not found."""
    top, *rest = reference.partition(":")[0].strip().split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return ""
    if spec is None:
        return ""
    if not rest:
        return spec.origin or ""
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *rest)
        for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if candidate.is_file():
                return str(candidate)
    return ""


def describe_plugin(project: Project, name: str) -> dict[str, Any]:
    """Everything that one plugin's manifest says, with its settings and the hooks it implements.

    Raises:
        UnknownName: no such plugin is installed.
        PluginError: its manifest cannot be loaded. What else of it cannot is empty here; `examine_plugin` says why.
    """
    manifest = project.catalogue.manifest(name)
    sources = project.catalogue.sources(name)
    return {
        "name": name,
        "version": project.catalogue.version(name),
        "distribution": sources[0].distribution if sources else "",
        "file": find_file(sources[0].reference) if sources else "",
        "api": "{}.{}".format(*manifest.api),
        "summary": manifest.summary,
        "guard": manifest.guard,
        "after": list(manifest.after),
        "hook_timeout": manifest.hook_timeout,
        "buffers": manifest.buffers,
        "provides": dict(manifest.provides),
        "compat_paths": dict(manifest.compat_paths),
        "keywords": dict(manifest.keywords),
        "hooks": {reference: _hooks(name, reference) for reference in manifest.hooks},
        "settings": _settings(manifest),
    }


def _hooks(name: str, reference: str) -> list[str]:
    """The hooks that one source implements, under the names of the specification, without making it."""
    try:
        source = load(name, reference)
    except PluginError:
        return []
    found = []
    for attribute in dir(source):
        if attribute.startswith("locus_") and getattr(getattr(source, attribute), "locus_impl", None) is not None:
            found.append(attribute)
        elif attribute == "on_tool_call":
            found.append("locus_decide_tool_call")
        elif attribute.startswith("on_") and callable(getattr(source, attribute)):
            found.append(f"locus_{attribute}")
    return sorted(found)


def _settings(manifest: Plugin) -> list[dict[str, Any]]:
    if manifest.settings is None:
        return []
    try:
        cls = load(manifest.name, manifest.settings)
    except PluginError:
        return []
    notes = _notes(cls)
    return [
        {
            "name": field.alias,
            "type": _type(field.type),
            "default": _default(field.default),
            "note": notes.get(field.name, ""),
        }
        for field in attrs.fields(cls)
        if field.init
    ]


def _type(annotation: Any) -> str:
    """The type as it is written, whether something has resolved it in the meantime or not."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    return annotation.__name__ if isinstance(annotation, type) else re.sub(r"[\w.]+\.(?=\w)", "", text)


def _default(value: Any) -> str:
    if value is attrs.NOTHING:
        return "(must be given)"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]  # a function for type checkers, a class at run time
        return "(made anew)"
    return repr(value)


def _notes(cls: type) -> dict[str, str]:
    """What the ``Args:`` section of the class says about each field."""
    notes: dict[str, str] = {}
    name = ""
    inside = False
    for line in inspect.cleandoc(cls.__doc__ or "").splitlines():
        if not line.startswith(" "):
            inside = line.strip() == "Args:" or (inside and not line.strip())
            continue
        if not inside:
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 4 and ":" in line:
            name, _, text = line.strip().partition(":")
            notes[name] = text.strip()
        elif name:
            notes[name] = f"{notes[name]} {line.strip()}"
    return notes


# -- hooks ----------------------------------------------------------------------------------------


def find_hooks() -> dict[str, HookInfo]:
    """Every hook by name, those for the events that are registered now included."""
    hooks = dict(HOOKS)
    for event_type in event_types():
        info = observer_info(event_type)
        hooks[info.name] = info
    return hooks


def list_calls(manager: HookManager, hook: str) -> list[dict[str, Any]]:
    """Who is called for a hook, in order.

    Args:
        manager: the hooks of an agent.
        hook: with or without ``locus_`` in front; an ``on_`` hook lists those that hear every event, too.

    Raises:
        UnknownName: the hook does not exist.
    """
    hooks = find_hooks()
    name = hook if hook in hooks else f"locus_{hook}"
    if name not in hooks:
        raise UnknownName("hook", hook, hooks)
    table = manager.table
    event = event_types().get(name.removeprefix("locus_on_"))
    impls = table.observers(event) if event is not None and name.startswith("locus_on_") else table.impls(name)
    return [
        {"plugin": impl.plugin, "hook": impl.hook, "guard": impl.guard, "async": impl.is_async, "timeout": impl.timeout}
        for impl in impls
    ]
