"""``locus graph draw``, ``run``, ``check``: a graph that a file of Python has."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import anyio
import click

from locus.core import decode_data, encode_data, freeze
from locus.core.errors import InputError, closest
from locus.journal import JournalHost
from locus.plugin import Lazy
from locus_plugin_graph.app import CompiledGraph
from locus_plugin_graph.builder import StateGraph
from locus_plugin_graph.checks import find_impure
from locus_plugin_graph.page import draw_page
from locus_plugin_graph.values import values_of

__all__ = ["graph"]

#: The command line is another distribution, which is there when a command is called.
cli: Any = Lazy("locus.cli")


def load_graph(text: str) -> CompiledGraph:
    """The graph that ``FILE:NAME`` names; one that is not compiled is.

    Raises:
        InputError: the file cannot be loaded, or has no such graph.
        GraphError: it cannot be compiled.
    """
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not path.is_file():
        raise InputError(f"expected FILE:NAME, such as flow.py:app, got {text!r}; {file or text!r} is not a file")
    spec = spec_from_file_location(f"locus_graph_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: expected a file of Python, such as flow.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # for annotations, which are looked up there
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise InputError(f"{file} cannot be loaded: {type(e).__name__}: {e}") from e
    found = vars(module).get(name)
    if isinstance(found, StateGraph):
        found = found.compile()
    if not isinstance(found, CompiledGraph):
        graphs = [key for key, value in vars(module).items() if isinstance(value, CompiledGraph | StateGraph)]
        near = closest(name, graphs)
        hint = f"did you mean {near!r}?" if near else f"its graphs are {', '.join(map(repr, graphs)) or 'missing'}"
        raise InputError(f"{file} has no graph {name!r}; {hint}")
    return found


graph = click.Group("graph", help="Draw, run and check graphs in files of Python.")

_THREAD = click.option("--thread", "thread_id", metavar="ID", help="A thread of the graph's own checkpointer.")


@graph.command(short_help="Show a graph as a mermaid flowchart, or as a page.")
@click.argument("source", metavar="FILE:NAME")
@_THREAD
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page instead.")
def draw(*, source: str, thread_id: str | None, html: Path | None) -> int:
    """Show the graph NAME of the Python file FILE; with a thread, what has run and what is next.

    The page is one file that loads nothing: the drawing, and of a thread its steps, values and open questions.
    """
    app = load_graph(source)
    if html is not None:
        page = anyio.run(draw_page, app, thread_id)
        try:
            html.write_text(page, encoding="utf-8")
        except OSError as e:
            raise InputError(f"{html} cannot be written: {e.strerror}") from e
        cli.say(f"wrote {html}")
        return 0
    cli.print_text(app.mermaid(None if thread_id is None else anyio.run(_read_state, app, thread_id)))
    return 0


async def _read_state(app: CompiledGraph, thread_id: str) -> Any:
    host = await JournalHost.peek(app.threads.store, thread_id)
    if host is None:
        raise InputError(f"thread {thread_id!r} does not exist")
    return host.state


@graph.command(short_help="Run a graph on a JSON object.")
@click.argument("source", metavar="FILE:NAME")
@click.argument("values", default=None, required=False, metavar="[JSON]")
@_THREAD
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="[ID=]TEXT",
    help="Go on with the thread, with this answer to its open question, or to that of several which has the id.",
)
@click.option("--resume", is_flag=True, help="Go on with the thread.")
def run(*, source: str, values: str | None, thread_id: str | None, answers: tuple[str, ...], resume: bool) -> int:
    """Run the graph NAME of the Python file FILE on JSON, or resume a thread of it; prints the values as JSON.

    Exit status: 0 it came to its end; 1 it did not, and why is said.
    """
    app = load_graph(source)
    if resume or answers:
        if thread_id is None:
            raise InputError("a run is resumed by its thread; give --thread ID")
        if values is not None:
            raise InputError(
                f"a run that is resumed takes no values, got {values!r:.80}; leave out --resume and --answer"
            )
        result = app.resume_sync(thread_id, anyio.run(_read_answers, app, thread_id, answers))
    else:
        given = _read_values("{}" if values is None else values)
        result = app.run_sync(given, **({} if thread_id is None else {"thread_id": thread_id}))
    cli.print_text(json.dumps(encode_data(freeze(values_of(result.state))), ensure_ascii=False, indent=2) + "\n")
    if result.stop_reason != "GraphEnd":
        cli.say(f"{result.stop_reason}{': ' + cli.one_line(result.detail) if result.detail else ''}")
    for asked in result.interrupts:
        options = f" [{' | '.join(map(str, asked.options))}]" if asked.options else ""
        which = f"(--answer {shlex.quote(f'{asked.interrupt_id}=TEXT')})" if len(result.interrupts) > 1 else ""
        cli.say(f"asks: {cli.one_line(f'{asked.question}{options} {which}'.rstrip())}")
    return 0 if result.stop_reason == "GraphEnd" else 1


def _read_values(text: str) -> Any:
    try:
        given = decode_data(json.loads(text))
    except ValueError as e:
        raise InputError(f"expected a JSON object of values, got {text!r:.80}: {e}") from e
    if not isinstance(given, Mapping):
        raise InputError(f"expected a JSON object of values, got {text!r:.80}")
    return given


async def _read_answers(app: CompiledGraph, thread_id: str, answers: tuple[str, ...]) -> Any:
    """The answer to the only question, or answers by the ids of questions; None without one."""
    host = await JournalHost.peek(app.threads.store, thread_id)
    ids = () if host is None else tuple(host.open_questions)
    named = {i: text.removeprefix(f"{i}=") for text in answers for i in ids if text.startswith(f"{i}=")}
    if not answers or len(named) == len(answers):
        return named or None
    if len(answers) > 1 or len(ids) > 1:
        raise InputError(
            f"several questions: expected ID=TEXT for each answer; open: {', '.join(sorted(ids)) or 'no question'}"
        )
    return answers[0]


@graph.command(short_help="Compile a graph, and say what it guarantees.")
@click.argument("source", metavar="FILE:NAME")
@_THREAD
def check(*, source: str, thread_id: str | None) -> int:
    """Compile the graph NAME of the Python file FILE and show its nodes and bounds; what is wrong is an error.

    Each reducer merges values of usual kinds twice, and those of the thread: one that does not come to the same is not
    pure, and the exit status is 1.
    """
    app = load_graph(source)
    held = {} if thread_id is None else values_of(anyio.run(_read_state, app, thread_id))
    impure = list(find_impure(app.plan, [(value, value) for value in held.values()]))
    for node in app.plan.nodes.values():
        follows = ", ".join(app.plan.targets(node.name)) or "a join"
        cli.print_text(f"{cli.one_line(node.name)}: {node.kind}, {node.effect} -> {cli.one_line(follows)}\n")
    bounds = app.bounds()
    cli.print_text(f"at most {bounds.iterations} super-steps\n")
    for key in impure:
        cli.say(f"the reducer of {key!r} is not pure: the same values came to two results, so a replay would differ")
    return 1 if impure else 0
