"""``locus config``: what is configured here, everything that is wrong with it at once, and whether it is trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import attrs
import click

from locus.config import Config, ConfigFile, find_config, read_config, read_file
from locus.core.errors import ConfigError, LocusError
from locus.plugins import Catalogue, Layer, Secret, plugin_settings, redact, scrub
from locus_plugin_cli import status
from locus_plugin_cli.checks import check_config
from locus_plugin_cli.common_options import CommonOptions, common_options, json_option
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.hiding import HIDDEN, hide, hide_in_prose, is_place
from locus_plugin_cli.model_choice import choose_model, why_unusable
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.project import Project, with_defaults
from locus_plugin_cli.text import one_line
from locus_plugin_cli.trust import Screened, TrustStore, includes_of, screen
from locus_plugin_cli.vetting import (
    describe_held,
    find_passed_over,
    installed_for,
    open_trust,
    trust_command,
    trusted_or_screened,
)

__all__ = ["config"]


@click.group(short_help="Check the configuration, and trust it.")
def config() -> None:
    """The configuration: locus.toml, or [tool.locus] in pyproject.toml."""


@config.command()
@json_option
@common_options
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> int:
    """Print the effective configuration, secrets hidden, and all that is wrong with it.

    Entries of an untrusted file that have no effect are listed.

    Exit status: 0, or 2 when something is wrong.
    """
    given = ctx.ensure_object(CommonOptions)
    found = find_config() if given.config is None else read_file(Path(given.config))
    screened = None if found is None else Screened(found) if given.config else trusted_or_screened(found)
    read, wrong = (
        (Config(env=os.environ.get("LOCUS_PLUGINS", "")), ()) if screened is None else read_config(screened.file)
    )
    read = with_defaults(read, given.switches)
    project = Project(read, Catalogue().allowing(read.allow))
    checked = check_config(project.config, project.catalogue, os.environ)
    passed_over = [] if given.config else [*find_passed_over()]
    problems = [*_trust_problems(screened), *wrong, *checked.problems]
    try:
        project.hooks()
    except LocusError as e:
        problems += [
            line for line in explain_error(e)[1].splitlines() if line not in {one_line(known) for known in problems}
        ]
    problems += _model_problems(project)
    effective = _effective(project)
    effective["trusted"] = screened is None or not screened.held
    effective["held back"] = [] if found is None or screened is None else [*describe_held(found, screened.held)]
    effective["passed over"] = passed_over
    problems = [hide_in_prose(text) for text in problems]
    if as_json:
        print_json({**effective, "problems": problems, "warnings": list(checked.warnings)})
    else:
        _print(effective)
        for text in checked.warnings:
            say(f"warning: {one_line(text)}")
        for text in problems:
            say(one_line(text))
    return status.USAGE if problems else status.OK


@config.command()
@click.argument("path", required=False, type=NOT_BLANK)
@click.option("--show", is_flag=True, help="Say what is trusted, and change nothing.")
@click.option("--revoke", is_flag=True, help="Stop trusting the file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with --show.")
@common_options
@click.pass_context
def trust(ctx: click.Context, *, path: str | None, show: bool, revoke: bool, as_json: bool) -> int:
    """Trust the configuration that was found here, or the file PATH, with its present content.

    A trusted file can start programs, enable plugins, and choose secrets and where they are sent. Any change to the
    file ends the trust. The list of trusted files is kept in your state folder.

    Exit status: 0, or 2 when the file is not there, or with --show when it is not trusted.
    """
    if show and revoke:
        raise click.UsageError("--show and --revoke exclude each other", ctx=ctx)
    path = path if path is not None else ctx.ensure_object(CommonOptions).config
    if revoke:
        return _revoke(path)
    file = find_config() if path is None else read_file(Path(path))
    if show:
        return _show_trust(file, as_json=as_json)
    if file is None:
        for found in find_passed_over():
            raise ConfigError(
                f"{found} is in a folder that other users can write to; change its permissions, or use --config {found}"
            )
        raise ConfigError(_NONE_FOUND)
    store = open_trust(file)
    held = screen(file, installed_for(file)).held
    store.add(file)
    _list_trust(file, held, store)
    return status.OK


_NONE_FOUND = "no configuration found: expected a locus.toml, or [tool.locus] in a pyproject.toml"


def _revoke(path: str | None) -> int:
    found = find_config() if path is None else None
    if path is None and found is None:
        raise ConfigError(f"{_NONE_FOUND}; give the path of the file")
    named = path if path is not None else str(found.source if found else "")
    was = open_trust().revoke(named)
    say(f"{one_line(named)} is {'no longer trusted' if was else 'not trusted, and was not before'}")
    return status.OK


def _list_trust(file: ConfigFile, held: tuple[str, ...], store: TrustStore) -> None:
    out = Output()
    out.piece(f"{one_line(file.source)}: {'trusted' if store.trusts(file) else 'not trusted'}\n")
    for text in describe_held(file, held):
        out.piece(f"  {text}\n")
    for path in includes_of(file, installed_for(file)):
        out.piece(f"  and what {one_line(str(path))} contains\n")


def _show_trust(file: ConfigFile | None, *, as_json: bool) -> int:
    store = open_trust(file)
    held = () if file is None else screen(file, installed_for(file)).held
    is_trusted = file is None or not held or store.trusts(file)
    others = [each.path for each in store.every()]
    if as_json:
        source = None if file is None else file.source
        entries = [] if file is None else [*describe_held(file, held)]
        print_json({"source": source, "trusted": is_trusted, "entries": entries, "files": others})
    else:
        if file is not None:
            _list_trust(file, held, store)
        for each in others:
            Output().piece(f"trusted as it was: {one_line(each)}\n")
    return status.OK if is_trusted else status.USAGE


def _effective(project: Project) -> dict[str, Any]:
    """The configuration as an agent of this project has it."""
    settings = project.config
    return {
        "source": settings.source,
        "agent": {key: _shown(value, key) for key, value in settings.agent.items()},
        "enabled": list(settings.enabled),
        "required": list(settings.required),
        "allow": None if settings.allow is None else list(settings.allow),
        "environment": settings.env,
        "command line": list(project.switches),
        "plugins": _plugins(project),
        "model": _model(project),
    }


def _trust_problems(screened: Screened | None) -> list[str]:
    if screened is None or not screened.held:
        return []
    source, held = screened.file.source, ", ".join(screened.held)
    command = trust_command(screened.file)
    return [f"{source} is not trusted, so these entries are not used: {held}; read it, then run `{command}`"]


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
            shown[name] = {} if made is None else _shown(made, "")
    return shown


def _shown(value: Any, name: str) -> Any:
    """A setting as plain data, without values that must not be shown."""
    return _said(hide(_plain(value), name))


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            f"(secret, from {value['env']})" if is_place(value) else {key: _said(each) for key, each in value.items()}
        )
    return [_said(each) for each in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return {"env": value.source} if value.source else HIDDEN
    kind: Any = type(value)
    if attrs.has(kind):
        return {field.alias: _plain(getattr(value, field.name)) for field in attrs.fields(kind)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else scrub(repr(value))


def _print(effective: dict[str, Any]) -> None:
    out = Output()
    out.piece(f"file: {effective['source'] or 'none (no locus.toml, no [tool.locus] in a pyproject.toml)'}\n")
    for text in effective["held back"]:
        out.piece(f"not trusted: {text}\n")
    for text in effective["passed over"]:
        out.piece(f"not read, others can write to its folder: {one_line(text)}\n")
    out.piece(f"model: {effective['model']}\n")
    for key, value in effective["agent"].items():
        if key != "model":
            out.piece(f"agent.{key}: {one_line(str(value))}\n")
    if effective["allow"] is not None:
        out.piece(f"allow: {', '.join(effective['allow']) or 'nothing'}\n")
    for key in ("enabled", "required", "command line"):
        if effective[key]:
            out.piece(f"{key}: {', '.join(effective[key])}\n")
    if effective["environment"]:
        out.piece(f"LOCUS_PLUGINS: {effective['environment']}\n")
    for name, values in effective["plugins"].items():
        out.piece(f"plugins.{name}:{'' if values else ' (no settings)'}\n")
        for key, value in values.items():
            out.piece(f"  {key} = {one_line(repr(value))}\n")
