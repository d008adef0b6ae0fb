"""``locus config check``: what is configured here, and everything that is wrong with it at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import attrs
import click

from locus.config import read_config
from locus.core.errors import LocusError
from locus.plugins import Layer, Secret, plugin_settings, redact, scrub
from locus_plugin_cli import status
from locus_plugin_cli.checks import check_config
from locus_plugin_cli.common_options import CommonOptions, common_options, json_option
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.model_choice import choose_model, why_unusable
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line

__all__ = ["config"]

#: Settings of these names are not shown whatever their type: not every author knows of `Secret`.
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)


@click.group(short_help="Check the configuration.")
def config() -> None:
    """The configuration: locus.toml, or [tool.locus] in pyproject.toml."""


@config.command()
@json_option
@common_options
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> int:
    """Print the effective configuration, secrets hidden, and all that is wrong with it.

    Exit status: 0, or 2 when something is wrong.
    """
    given = ctx.ensure_object(CommonOptions)
    read, wrong = read_config(given.config)
    project = Project(attrs.evolve(read, cli=given.switches))
    checked = check_config(project.config, project.catalogue, os.environ)
    problems = [*wrong, *checked.problems]
    try:
        project.hooks()
    except LocusError as e:
        problems += [
            line for line in explain_error(e)[1].splitlines() if line not in {one_line(known) for known in problems}
        ]
    problems += _model_problems(project)
    effective = _effective(project)
    if as_json:
        print_json({**effective, "problems": problems, "warnings": list(checked.warnings)})
    else:
        _print(effective)
        for text in checked.warnings:
            say(f"warning: {one_line(text)}")
        for text in problems:
            say(one_line(text))
    return status.USAGE if problems else status.OK


def _effective(project: Project) -> dict[str, Any]:
    """The configuration as an agent of this project has it."""
    settings = project.config
    return {
        "source": settings.source,
        "agent": {key: _shown(value, key) for key, value in settings.agent.items()},
        "enabled": list(settings.enabled),
        "required": list(settings.required),
        "environment": settings.env,
        "command line": list(project.switches),
        "plugins": _plugins(project),
        "model": _model(project),
    }


def _model_problems(project: Project) -> list[str]:
    try:
        problem = why_unusable(choose_model(None, project, os.environ), project)
    except LocusError:
        return []  # a missing choice is not an error here
    return [problem] if problem else []


def _model(project: Project) -> str:
    try:
        chosen = choose_model(None, project, os.environ)
    except LocusError as e:
        return f"none: {one_line(str(e))}"
    return f"{redact(chosen.model)} ({chosen.why})"


def _plugins(project: Project) -> dict[str, dict[str, Any]]:
    """The settings of each plugin that is switched on or configured, defaults included."""
    shown: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(
        (*project.config.required, *project.config.enabled, *project.config.plugin_settings, *project.switches)
    ):
        if name.startswith("no:"):
            continue
        table = project.config.plugin_settings.get(name)
        layers = [table] if isinstance(table, Layer) else []
        try:
            made = plugin_settings(project.catalogue.manifest(name), layers, None, os.environ)
        except LocusError:
            # It could not be parsed, so what in it is a secret is unknown: show its keys only.
            shown[name] = dict.fromkeys(table.values if isinstance(table, Layer) else (), "(not read)")
        else:
            shown[name] = {} if made is None else _values(made)
    return shown


def _values(made: Any) -> dict[str, Any]:
    return {field.alias: _shown(getattr(made, field.name), field.alias) for field in attrs.fields(type(made))}


def _shown(value: Any, name: str) -> Any:
    """A setting as plain data."""
    if isinstance(value, Secret):
        return f"(secret, from {value.source})" if value.source else "(secret)"
    if isinstance(value, str):
        return "(hidden)" if _SECRET.search(name) else redact(value)
    kind: Any = type(value)
    if attrs.has(kind):
        return _values(value)
    if isinstance(value, Mapping):
        return {str(k): _shown(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_shown(v, name) for v in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, int | float) else scrub(repr(value))


def _print(effective: dict[str, Any]) -> None:
    out = Output()
    out.piece(f"file: {effective['source'] or 'none (no locus.toml, no [tool.locus] in a pyproject.toml)'}\n")
    out.piece(f"model: {effective['model']}\n")
    for key, value in effective["agent"].items():
        if key != "model":
            out.piece(f"agent.{key}: {one_line(str(value))}\n")
    for key in ("enabled", "required", "command line"):
        if effective[key]:
            out.piece(f"{key}: {', '.join(effective[key])}\n")
    if effective["environment"]:
        out.piece(f"LOCUS_PLUGINS: {effective['environment']}\n")
    for name, values in effective["plugins"].items():
        out.piece(f"plugins.{name}:{'' if values else ' (no settings)'}\n")
        for key, value in values.items():
            out.piece(f"  {key} = {one_line(repr(value))}\n")
