"""`locus plugins doctor`: tries everything that an agent would only try when it is needed."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from locus.core.errors import ConfigError, LocusError, SettingsError
from locus.hooks import HookManager
from locus.plugin import Plugin
from locus.plugins import Layer, PluginRequest, activate, load, plugin_settings, redact, scrub
from locus_plugin_cli import shadowing
from locus_plugin_cli.checks import check_config
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.model_choice import choose_model, why_unusable
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import escape_controls, one_line

__all__ = ["Finding", "examine", "examine_named", "examine_plugin"]

#: The kind in a manifest's ``provides``: ``async (settings, wanted) -> rows of (subject, problem, note)``.
_KIND = "doctor"


@frozen
class Finding:
    """One thing that was looked at.

    Args:
        subject: what: ``"kernel"``, ``"configuration"``, ``"default model"``, or a plugin's name.
        problem: what is wrong and what to do; ``""`` when all is well.
        note: what is worth knowing although nothing is wrong.
        trace: the traceback behind the problem.
    """

    subject: str
    problem: str = ""
    note: str = ""
    trace: str = ""


def examine(project: Project) -> list[Finding]:
    """What is wrong with the installation, the plugins and the configuration, and what is not."""
    found = [Finding("kernel", problem) for problem in shadowing.find_shadows()] or [Finding("kernel")]
    manifests = []
    for report in project.catalogue.status():
        if report.status != "available":
            found.append(Finding(report.name, one_line(report.detail), trace=report.trace))
            continue
        manifest = project.catalogue.manifest(report.name)
        manifests.append(manifest)
        found += examine_plugin(project, manifest)
    found += _compat_paths(manifests)
    found += _configuration(project)
    found.append(_default(project))
    return found


def examine_named(project: Project, names: Sequence[str]) -> list[Finding]:
    """What is wrong with some plugins, each tried as far as it can be: a server that it would start is started.

    Args:
        project: the configuration, which has their settings.
        names: of plugins; ``NAME:WHAT`` for one thing of a plugin, such as one server.

    Raises:
        UnknownName: no such plugin, or nothing of that name in it.
        PluginError, SettingsError: it cannot be tried.
    """
    found: list[Finding] = []
    for text in names:
        name, _, wanted = text.partition(":")
        manifest = project.catalogue.manifest(name)
        trials = [] if manifest.provides.get(_KIND) is None else _trials(project, manifest, wanted)
        if wanted and not trials:
            raise ConfigError(f"{text!r}: the plugin {name!r} has nothing to try beside itself; leave out {wanted!r}")
        found += [*examine_plugin(project, manifest), *trials]
    return found


def _trials(project: Project, manifest: Plugin, wanted: str) -> list[Finding]:
    """What the plugin finds when it tries itself."""
    name, reference = manifest.name, manifest.provides[_KIND]
    layer = project.config.plugin_settings.get(name)
    settings = plugin_settings(manifest, [layer] if isinstance(layer, Layer) else [], None, os.environ)
    rows = asyncio.run(load(name, reference)(settings, wanted))
    return [
        Finding(f"{name}:{subject}" if subject else name, scrub(escape_controls(problem)), one_line(note))
        for subject, problem, note in rows
    ]


def examine_plugin(project: Project, manifest: Plugin) -> list[Finding]:
    """What is wrong with one plugin: one finding without a problem where nothing is.

    Args:
        project: the configuration, which has its settings.
        manifest: the plugin.
    """
    name = manifest.name
    problems: list[Finding] = []
    note = ""

    def attempt(work: Callable[[], object]) -> None:
        try:
            work()
        except LocusError as e:
            problems.append(Finding(name, explain_error(e)[1].replace("\n", "; "), trace=_trace(e)))

    for reference in (*manifest.provides.values(), *manifest.compat_paths.values()):
        attempt(lambda reference=reference: load(name, reference))  # type: ignore[misc]
    if manifest.settings is not None:
        attempt(lambda: load(name, str(manifest.settings)))
    try:
        table = project.config.plugin_settings
        active = activate(PluginRequest(plugins=(name,), tables=table), project.catalogue, environ=os.environ)
        HookManager.build(active.plugins)
    except SettingsError as e:
        if name in table:
            pass  # the configuration is judged as a whole, below
        else:
            note = f"needs settings: {explain_error(e)[1].replace(chr(10), '; ')}"
    except LocusError as e:
        problems.append(Finding(name, explain_error(e)[1], trace=_trace(e)))
    unknown = [after for after in manifest.after if after not in project.catalogue.names()]
    if unknown:
        note = "; ".join(filter(None, [note, f"comes after {', '.join(unknown)}, which is not installed"]))
    return problems or [Finding(name, note=note)]


def _compat_paths(manifests: Iterable[Plugin]) -> list[Finding]:
    """Names that two plugins offer under one import path."""
    owners: dict[str, list[str]] = {}
    for manifest in manifests:
        for path in manifest.compat_paths:
            owners.setdefault(path, []).append(manifest.name)
    return [
        Finding(" and ".join(names), f"each provides {path}; uninstall all but one")
        for path, names in sorted(owners.items())
        if len(names) > 1
    ]


def _configuration(project: Project) -> list[Finding]:
    checked = check_config(project.config, project.catalogue, os.environ)
    wrong = [Finding("configuration", one_line(problem)) for problem in checked.problems]
    wrong += [Finding("configuration", note=one_line(warning)) for warning in checked.warnings]
    if not checked.problems:
        try:
            reports = project.hooks().reports
        except LocusError as e:
            wrong += [Finding("configuration", line) for line in explain_error(e)[1].splitlines()]
        else:
            # What the file names has been looked at; this is what the environment names.
            wrong += [
                Finding("configuration", note=f"LOCUS_PLUGINS: {one_line(report.detail)}")
                for report in reports
                if report.status == "missing" and report.name not in (*project.config.enabled, *project.config.required)
            ]
    return wrong or [Finding("configuration", note=project.config.source or "none")]


def _default(project: Project) -> Finding:
    try:
        chosen = choose_model(None, project, os.environ)
    except LocusError as e:
        return Finding("default model", note=one_line(str(e)))
    return Finding("default model", why_unusable(chosen, project), note=f"{redact(chosen.model)} ({chosen.why})")


def _trace(error: BaseException) -> str:
    cause = error.__cause__
    if cause is None:
        return ""
    return scrub("".join(traceback.format_exception(cause)))
