"""``locus models``: what the installed providers offer, which model is the default, and why; and files to fetch."""

from __future__ import annotations

import os

import click

from locus.core.errors import LocusError, UnknownName
from locus.plugins import redact
from locus_plugin_cli import status
from locus_plugin_cli.common_options import CommonOptions, common_options, json_option
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.model_choice import ChosenModel, choose_model, list_offers
from locus_plugin_cli.output import print_json, print_rows, print_text, say
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.project import Project
from locus_plugin_cli.pullable import list_pullable

__all__ = ["models", "pull"]


@click.group(invoke_without_command=True, short_help="What the installed providers offer, and the default.")
@json_option
@common_options
@click.pass_context
def models(ctx: click.Context, *, as_json: bool) -> int:
    """List the models that the installed providers offer, with the one that is used where none is named.

    A provider that does not list its models is one line, `provider:...`. Exit status: 0, or 2 when the
    configuration is wrong.
    """
    if ctx.invoked_subcommand is not None:
        return status.OK
    project = Project.of(ctx.ensure_object(CommonOptions))
    found = list_offers(project)
    default: ChosenModel | None = None
    problem = ""
    try:
        default = choose_model(None, project, os.environ)
    except LocusError as e:
        problem = explain_error(e)[1]
    if as_json:
        print_json(
            {
                "default": None if default is None else {"model": redact(default.model), "why": default.why},
                "problem": problem,
                "models": [
                    {"provider": o.provider, "model": o.model, "note": o.note, "problem": o.problem} for o in found
                ],
            }
        )
        return status.OK
    chosen = "" if default is None else default.model
    if found:
        print_rows(("", "MODEL", "NOTE"), [("*" if o.model == chosen else "", o.model, o.note) for o in found])
    for offer in found:
        if offer.problem:
            say(f"{offer.provider} cannot list its models: {offer.problem}")
    if default is None:
        say(problem)
    else:
        print_text(f"default: {redact(default.model)} ({default.why})\n")
    return status.OK


@models.command(short_help="Fetch the files of models before they are needed.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=NOT_BLANK)
@common_options
@click.pass_context
def pull(ctx: click.Context, *, names: tuple[str, ...]) -> int:
    """Fetch the file of a model that runs on this machine, so that its first use needs no network.

    NAME is as `locus models` lists it, with or without the provider. What was fetched before is not fetched again, and
    an interrupted fetch is resumed. Prints the path of each file. Exit status: 0, 1 when a file cannot be fetched,
    or 2 when a name is unknown.
    """
    known = {each.file.label: each for each in list_pullable(Project.of(ctx.ensure_object(CommonOptions)))}
    short = {label.partition(":")[2]: label for label in known}
    wanted = [short.get(name, name) for name in names]
    for name in wanted:
        if name not in known:
            raise UnknownName("file of a model", name, known)
    for each in (known[name] for name in wanted):
        print_text(f"{each.obtain()}\n")
    return status.OK
