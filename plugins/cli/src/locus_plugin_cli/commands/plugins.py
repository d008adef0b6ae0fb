"""``locus plugins``: the list, one plugin in full, the order of a hook, and the doctor."""

from __future__ import annotations

from typing import Any

import attrs
import click

from locus.core.errors import LocusError
from locus.hooks import HookManager
from locus_plugin_cli import status
from locus_plugin_cli.common_options import CommonOptions, common_options, json_option
from locus_plugin_cli.doctor import examine, examine_named, examine_plugin
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.output import Output, print_json, print_rows, say
from locus_plugin_cli.plugin_listing import Row, describe_plugin, list_calls, list_plugins
from locus_plugin_cli.project import Project
from locus_plugin_cli.streams import print_error, standard

__all__ = ["plugins"]

_verbose = click.option("-v", "--verbose", is_flag=True, help="Show the tracebacks behind what failed.")


@click.group(invoke_without_command=True, short_help="List, show, order and check the installed plugins.")
@json_option
@_verbose
@common_options
@click.pass_context
def plugins(ctx: click.Context, *, as_json: bool, verbose: bool) -> int:
    """List the installed plugins: which are active here, why others are not, and where each comes from.

    Exit status: 0, or 2 when the configuration is wrong.
    """
    if ctx.invoked_subcommand is not None:
        ctx.meta["json"], ctx.meta["verbose"] = as_json, verbose
        return status.OK
    project = Project.of(ctx.ensure_object(CommonOptions))
    code, manager = status.OK, HookManager()
    try:
        manager = project.hooks()
    except LocusError as e:
        code, text = status.USAGE, explain_error(e)[1]
        for line in text.splitlines():
            say(line)
    rows = list_plugins(project, manager)
    if as_json:
        print_json([attrs.asdict(row) for row in rows])
        return code
    _print_list(rows)
    if verbose:
        _traces([(row.name, row.trace) for row in rows])
    return code


def _print_list(rows: list[Row]) -> None:
    """One line each for programs; for a person, a second line says where it comes from."""
    cells = [(r.name, r.version, f"{r.status}{' guard' if r.guard else ''}", r.detail or r.summary) for r in rows]
    origins = [(r.distribution, r.file, ", ".join(r.provides)) for r in rows]
    if standard().out.is_terminal:
        below = [f"{', '.join(filter(None, (o[0], o[1])))}{f' provides {o[2]}' if o[2] else ''}" for o in origins]
        print_rows(
            ("NAME", "VERSION", "STATUS", ""), [(*c[:3], f"{c[3]}\n{b}") for c, b in zip(cells, below, strict=True)]
        )
    else:
        print_rows((), [(*c, *o) for c, o in zip(cells, origins, strict=True)])


@plugins.command()
@click.argument("name")
@json_option
@common_options
@click.pass_context
def show(ctx: click.Context, *, name: str, as_json: bool) -> int:
    """Show what the plugin NAME says of itself: hooks, settings, what it provides; and what of that does not work.

    Exit status: 0; 1 when something of it does not work; 2 when it is not installed, or the configuration is wrong.
    """
    project = Project.of(ctx.ensure_object(CommonOptions))
    known = describe_plugin(project, name)
    found = [finding for finding in examine_plugin(project, project.catalogue.manifest(name)) if finding.problem]
    code = status.FAILED if found else status.OK
    if as_json or ctx.meta.get("json"):
        print_json({**known, "problems": [finding.problem for finding in found]})
        return code
    out = Output()
    out.piece(f"{known['name']} {known['version']}\n{known['summary']}\n")
    for key in ("distribution", "file", "api", "guard", "after", "hook_timeout", "buffers"):
        value = known[key]
        if value not in (False, None, [], ""):
            out.piece(f"{key}: {', '.join(value) if isinstance(value, list) else value}\n")
    for key in ("provides", "compat_paths", "keywords"):
        if known[key]:
            out.piece(f"{key}:\n" + "".join(f"  {k} -> {v}\n" for k, v in known[key].items()))
    if known["hooks"]:
        out.piece("hooks:\n")
        for reference, hooks in known["hooks"].items():
            out.piece(f"  {reference}: {', '.join(hooks) or 'none'}\n")
    if known["settings"]:
        out.piece(f"settings ([plugins.{name}]):\n" + "".join(map(_setting, known["settings"])))
    for finding in found:
        out.piece(f"PROBLEM: {finding.problem}\n", "bold red")
    return code


def _setting(field: dict[str, Any]) -> str:
    note = f": {field['note']}" if field["note"] else ""
    return f"  {field['name']} ({field['type']}) = {field['default']}{note}\n"


@plugins.command()
@click.argument("hook")
@json_option
@common_options
@click.pass_context
def order(ctx: click.Context, *, hook: str, as_json: bool) -> int:
    """Show which plugins are called for HOOK, in order; of wrappers the first is the outermost."""
    found = list_calls(Project.of(ctx.ensure_object(CommonOptions)).hooks(), hook)
    if as_json or ctx.meta.get("json"):
        print_json(found)
        return status.OK
    if not found:
        say("no active plugin implements it; -p NAME switches one on")
    print_rows(
        ("", "PLUGIN", "HOOK", ""),
        [(str(n), c["plugin"], c["hook"], "guard" if c["guard"] else "") for n, c in enumerate(found, 1)],
    )
    return status.OK


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME[:WHAT]]...")
@json_option
@_verbose
@common_options
@click.pass_context
def doctor(ctx: click.Context, *, names: tuple[str, ...], as_json: bool, verbose: bool) -> int:
    """Try every plugin, its hooks, settings and providers, and look for whatever else is in the way.

    With the NAME of a plugin, that one is tried in full: mcp starts its servers, and mcp:git the one of that name.

    Exit status: 0 all plugins work; 1 one of them does not; 2 the plugin is not installed, or its settings are wrong.
    """
    project = Project.of(ctx.ensure_object(CommonOptions))
    found = examine_named(project, names) if names else examine(project)
    code = status.FAILED if any(finding.problem for finding in found) else status.OK
    if as_json or ctx.meta.get("json"):
        print_json([attrs.asdict(finding) for finding in found])
        return code
    print_rows(
        ("", "", ""),
        [("PROBLEM" if f.problem else "ok", f.subject, (f.problem or f.note).partition("\n")[0]) for f in found],
    )
    out = Output()
    for finding in found:
        if rest := finding.problem.partition("\n")[2]:
            out.piece(f"\n{finding.subject}:\n{rest}\n")
    if verbose or ctx.meta.get("verbose"):
        _traces([(finding.subject, finding.trace) for finding in found])
    return code


def _traces(found: list[tuple[str, str]]) -> None:
    for name, trace in found:
        if trace:
            print_error(f"\n{name}:\n{trace}\n")
