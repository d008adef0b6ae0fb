"""Runs that were killed: the next start says once how they go on."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from locus.core.errors import StoreError
from locus.journal import JournalStore, ThreadInfo, ThreadQuery
from locus.journal.listing import parent_thread
from locus_kit.state import state_folder
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.output import say
from locus_plugin_cli.recipe import PlainRecipe, Recipe
from locus_plugin_cli.text import format_age
from locus_plugin_cli.thread_store import StoreChoice

__all__ = ["mention_interrupted"]

#: How old what is mentioned may be.
_FRESH = timedelta(days=7)

#: How many threads it is remembered of that they were mentioned.
_REMEMBERED = 400


def mention_interrupted(journals: Journals, besides: str | None, recipe: Recipe | None = None) -> None:
    """Say on standard error that a run of this command stopped in the middle, once for each time that one does.

    If the store cannot be used and was not asked for, that is said instead, and the command goes on without.

    Args:
        journals: the store.
        besides: the thread that this command is about, of which nothing needs to be said.
        recipe: of the agents of this command; None = those of ``locus run``.

    Raises:
        StoreError: the store cannot be used, and was asked for.
    """
    if not journals.kept.lasting:
        return
    recipe = PlainRecipe() if recipe is None else recipe
    try:
        found = journals.run(_interrupted(journals.store, besides, recipe.agent_id))
    except StoreError as e:
        journals.warn_and_use_memory(e)
        return
    except Exception:  # noqa: BLE001  this line is a courtesy; the next use of the store reports what is wrong
        return
    marks = [_mark(journals.kept, each) for each in found]
    told = _told()
    if not set(marks) - set(told):
        return
    newest, others = found[0], len(found) - 1
    words = ["locus", recipe.command, "--thread", newest.thread_id, *recipe.resuming]
    if journals.kept.text is not None:
        words += ["--checkpointer", journals.kept.text]
    when = f" {format_age(newest.updated_at)}" if newest.updated_at is not None else ""
    more = f" ({others} more: locus threads)" if others else ""
    say(f"thread {newest.thread_id} stopped in the middle{when}; go on with: {shlex.join(words)}{more}")
    _tell([*told, *(mark for mark in marks if mark not in told)])


async def _interrupted(store: JournalStore, besides: str | None, agent_id: str) -> list[ThreadInfo]:
    """The threads of this command whose run is open and whose process is gone, the newest first."""
    since = datetime.now(UTC) - _FRESH
    return [
        info
        for info in await store.threads(ThreadQuery(status=("crashed",), agent_id=agent_id))
        if info.thread_id != besides and parent_thread(info.thread_id) is None and (info.updated_at or since) >= since
    ]


# -- what was said before -------------------------------------------------------------------------


def _mark(kept: StoreChoice, thread: ThreadInfo) -> str:
    # With its head: what goes on and dies again is mentioned again.
    return json.dumps([kept.name, thread.thread_id, thread.head])


def _path() -> Path:
    return state_folder() / "mentioned"


def _told() -> list[str]:
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        return _path().read_text(encoding="utf-8").splitlines()
    return []


def _tell(marks: Sequence[str]) -> None:
    """Remember; where that is impossible, it is said again next time."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write("".join(f"{mark}\n" for mark in marks[-_REMEMBERED:]))
        os.replace(file.name, path)  # noqa: PTH105 - readers see the old or the new file
