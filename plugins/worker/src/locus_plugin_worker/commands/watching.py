"""``locus runs watch``: what a run does, live, while another process works on it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any

from locus.core.journal import Asked
from locus_kit.calls import show_call
from locus_plugin_worker.commands.base import cli, store_options
from locus_plugin_worker.following import follow
from locus_plugin_worker.moments import Moment

__all__ = ["print_moment", "show_moment", "watch_thread", "words_to_answer"]

#: Exit statuses, as `locus run` has them.
_OK, _FAILED, _WAITING, _STOPPED = 0, 1, 3, 130

#: Characters of what a model or a tool says on its line.
_LONG = 300


def watch_thread(journals: Any, thread_id: str, *, as_json: bool) -> int:
    """Show what happens on a thread until its run ends, is set aside, or waits for a person; gives the exit status.

    Args:
        journals: an open store.
        thread_id: the thread.
        as_json: one JSON object a line.
    """
    status: int = journals.run(_watch(journals, thread_id, as_json=as_json))
    return status


async def _watch(journals: Any, thread_id: str, *, as_json: bool) -> int:
    moments = follow(journals.store, thread_id)
    try:
        async for moment in moments:
            print_moment(moment, as_json=as_json)
            status = _status_of(moment)
            if status is not None and await _is_newest(journals.store, thread_id, moment):
                if status == _WAITING:
                    _say_how_to_answer(journals, thread_id)
                return status
    except asyncio.CancelledError:  # Ctrl-C: the run goes on without a watcher
        cli.say("the run goes on; this was only watching")
        return _STOPPED
    finally:
        await moments.aclose()
    return _OK


def _status_of(moment: Moment) -> int | None:
    """The exit status where a run does not go on by itself behind this moment."""
    if moment.kind == "ended":
        return _FAILED if moment.is_failure else _OK
    if moment.kind == "paused" and moment.pause == "interrupted":
        return _WAITING
    return _FAILED if moment.kind == "paused" and moment.pause in ("dead_letter", "failed") else None


async def _is_newest(store: Any, thread_id: str, moment: Moment) -> bool:
    """Whether nothing was written behind a moment: a thread may have had runs before."""
    return not await store.read(thread_id, moment.n)


def _say_how_to_answer(journals: Any, thread_id: str) -> None:
    cli.say(f"answer with: {shlex.join(['locus', 'runs', 'answer', thread_id, *store_options(journals), 'ANSWER'])}")


def words_to_answer(questions: Sequence[Asked]) -> tuple[str, ...]:
    """The answers to write in a `locus runs answer` command; with several questions each answer names its own."""
    return tuple(f"{each.interrupt_id}=ANSWER" for each in questions) if len(questions) > 1 else ("ANSWER",)


def print_moment(moment: Moment, *, as_json: bool) -> None:
    """Write a moment on a line of its own."""
    if as_json:
        cli.print_json(moment.to_json(), indent=None)
    else:
        cli.print_text(f"{show_moment(moment)}\n")


def show_moment(moment: Moment) -> str:
    """A moment as a person reads it."""
    text = cli.one_line(moment.text)
    text = text if len(text) <= _LONG else f"{text[: _LONG - 4]} ..."
    tool = cli.one_line(moment.tool)
    choice = f" [{' | '.join(moment.options)}]" if moment.options else ""
    match moment.kind:
        case "queued":
            return f"submitted: {text}"
        case "began":
            return f"began: {text}"
        case "resumed":
            return "goes on"
        case "said":
            return text
        case "called" if moment.call is not None:
            return f"-> {show_call(moment.call)}"
        case "returned":
            return f"<- {tool}{' failed' if moment.is_failure else ''}: {text}"
        case "asked":
            return f"asks ({moment.interrupt_id}): {text}{cli.one_line(choice)}"
        case "answered":
            return f"answered ({moment.interrupt_id}): {text}"
        case "paused":
            return text
        case _:
            return f"{moment.kind}: {text}"
