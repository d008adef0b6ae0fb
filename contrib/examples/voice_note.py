"""A voice note becomes tasks: who does what until when, in an SQLite file.

    python contrib/examples/voice_note.py note.wav --transcribe "whisper-cli -m base.en.bin --no-prints -nt -f"

It needs the plugin of the model. Without `--transcribe` the sound itself is a block of the user's turn, for models that
hear. With it, a program on this machine makes text of it first, for all others: any command that takes the file as its
last argument and prints the words. That is a plain function before the run, because there is nothing to decide.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sqlite3
import subprocess
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from locus import Agent, TokenLimit, ToolContext, ToolError, tool
from locus.core.messages import MediaBlock, TextBlock

TYPES = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".flac": "audio/flac"}


@frozen
class Tasks:
    """The list of tasks, in an SQLite file, and the people who may get one."""

    path: str
    people: tuple[str, ...]

    def open(self) -> sqlite3.Connection:
        """Connect; the caller closes."""
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE IF NOT EXISTS tasks (key TEXT PRIMARY KEY, who TEXT, what TEXT, due TEXT)")
        return db


@tool(effect="keyed", targets=("who",))
def add_task(who: str, what: str, due: date | None, ctx: ToolContext[Tasks]) -> str:
    """Add a task.

    Args:
        who: the first name of who does it.
        what: in one line.
        due: the last day for it; null if none was said.
    """
    if who not in ctx.deps.people:
        raise ToolError(f"{who!r} is not in the team; expected one of {', '.join(ctx.deps.people)}")
    with closing(ctx.deps.open()) as db, db:
        row = (ctx.idempotency_key, who, what, due and due.isoformat())
        db.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?)", row)
    return f"{who}: {what}"


def transcribe(command: str, sound: Path, seconds: float = 300.0) -> str:
    """The words of a sound file, as a program on this machine hears them; no shell reads the command."""
    done = subprocess.run(  # noqa: S603  # the command is the user's
        [*shlex.split(command), str(sound)], capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"{command} gave no text for {sound}, exit status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout.strip()


def read_note(sound: Path, command: str | None) -> TextBlock | MediaBlock:
    """The block for the user's turn: the words of the note, or the note itself."""
    if command is not None:
        return TextBlock(f"A voice note, transcribed: {transcribe(command, sound)}")
    kind = TYPES.get(sound.suffix.lower())
    if kind is None:
        raise SystemExit(
            f"{sound} is not a sound that models take; expected one of {', '.join(TYPES)}, or --transcribe"
        )
    return MediaBlock("audio", kind, data=sound.read_bytes(), name=sound.name)


def build(model: Any, today: date) -> Agent[Tasks, Any]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model; one that hears, where notes are not transcribed.
        today: what "tomorrow" counts from.
    """
    return Agent(
        model,
        name="notes",
        tools=[add_task],
        system_prompt=f"Today is {today:%A, %Y-%m-%d}. Add the tasks of the voice note, then answer in one sentence.",
        termination=TokenLimit(30_000),
        max_iterations=6,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Turn a voice note into tasks.")
    parser.add_argument("sound", type=Path, help="the file, such as note.wav")
    parser.add_argument("--transcribe", help="a command that prints the words of the file that is its last argument")
    parser.add_argument("--tasks", default="tasks.db", help="the SQLite file with the tasks")
    parser.add_argument("--people", default="Ann,Bob", help="who may get a task")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    tasks = Tasks(args.tasks, tuple(args.people.split(",")))
    note = read_note(args.sound, args.transcribe)
    result = asyncio.run(build(args.model, datetime.now().astimezone().date()).run([note], deps=tasks))
    print(result.text or f"{result.stop_reason}: {result.error or result.detail}")
