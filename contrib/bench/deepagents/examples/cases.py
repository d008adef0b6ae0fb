"""What the model says in each example, what files there are, and what comes of it: the same for both sides.

The model copies what its tools answered into its next turn, where a turn has ``{results}``: so what is in the files
went through the tools, the subagents and their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["EXAMPLES", "Call", "Example", "find_turn", "put_files", "read_files"]


class Call(NamedTuple):
    """The model calls a tool, whose parameters have the names that they have in this framework."""

    tool: str
    arguments: dict[str, Any]


class Example(NamedTuple):
    """One example.

    Args:
        wanted: the answer, the todos, and the files that are there afterwards.
        turns: what the model answers, one turn after the other, by the first message of the user to the agent: each
            subagent is another conversation.
        files: what is in the folder at the beginning.
        told: texts that must be in the system prompt of the first agent.
    """

    wanted: dict[str, Any]
    turns: Mapping[str, tuple[str | tuple[Call, ...], ...]]
    files: Mapping[str, str] = {}
    told: tuple[str, ...] = ()


def todos(*contents: str, done: int) -> list[dict[str, str]]:
    """A list of todos: some completed, the next one in progress."""
    statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(contents)
    return [{"content": content, "status": status} for content, status in zip(contents, statuses, strict=False)]


def plan(*contents: str, done: int) -> tuple[Call, ...]:
    return (Call("write_todos", {"todos": todos(*contents, done=done)}),)


def write(path: str, contents: str) -> tuple[Call, ...]:
    return (Call("write_file", {"path": path, "contents": contents}),)


def edit(path: str, old: str, new: str) -> tuple[Call, ...]:
    return (Call("edit_file", {"path": path, "old_str": old, "new_str": new}),)


def task(subagent: str, description: str) -> Call:
    return Call("task", {"subagent_type": subagent, "description": description})


RESEARCH = "When was gallium found, and where does it melt?"
FOUND, MELTS = "When was gallium found?", "Where does gallium melt?"
REPORT = "# Gallium\n\nIt was found in 1875 [1].\nIt melts at 29.8 degrees [2].\n"
STEPS = ("save the request", "research", "write the report")

CODE = "Fix total in /cart.py, it ignores quantities; test it in /test_cart.py."
CART = "def total(items):\n    return sum(item.price for item in items)\n"
FIXED = CART.replace("item.price for", "item.price * item.quantity for")
TEST = "def test_total_counts_each():\n    assert total([Item(price=2, quantity=3)]) == 6\n"
CHANGES = ("find the bug", "fix it", "test it")

CONTENT = "Write about gallium: notes to /research/gallium.md, then a post to /blogs/gallium/post.md."
VOICE = "# Voice\n\nShort sentences. No jargon.\n"
SKILL = "---\nname: blog-post\ndescription: How a blog post is built.\n---\nA hook, the facts, a call to action.\n"
KEPT = {"AGENTS.md": VOICE, "skills/blog-post/SKILL.md": SKILL}

EXAMPLES = {
    "research": Example(
        {
            "answer": "See /final_report.md.",
            "todos": todos(*STEPS, done=3),
            "files": {"research_request.md": RESEARCH, "final_report.md": REPORT},
        },
        {
            RESEARCH: (
                plan(*STEPS, done=0),
                write("/research_request.md", RESEARCH),
                (task("research-agent", FOUND), task("research-agent", MELTS)),
                write("/final_report.md", "# Gallium\n\n{results}\n"),
                plan(*STEPS, done=3),
                "See /final_report.md.",
            ),
            FOUND: (
                (Call("internet_search", {"query": "gallium discovery"}),),
                (Call("think_tool", {"reflection": "{results}"}),),
                "It was {results} [1].",
            ),
            MELTS: ((Call("internet_search", {"query": "gallium melting"}),), "It {results} [2]."),
        },
    ),
    "coding": Example(
        {
            "answer": "Fixed and tested.",
            "todos": todos(*CHANGES, done=3),
            "files": {"cart.py": FIXED, "test_cart.py": TEST},
        },
        {
            CODE: (
                plan(*CHANGES, done=0),
                (Call("grep", {"pattern": "sum"}),),
                (Call("read_file", {"path": "/cart.py"}),),
                edit("/cart.py", "item.price for", "item.price * item.quantity for"),
                write("/test_cart.py", TEST),
                plan(*CHANGES, done=3),
                "Fixed and tested.",
            ),
        },
        {"cart.py": CART},
    ),
    "content": Example(
        {
            "answer": "It is in /blogs/gallium/post.md.",
            "todos": [],
            "files": {
                **KEPT,
                "research/gallium.md": "- found in 1875\n",
                "blogs/gallium/post.md": "A metal for your hand.\n\n- found in 1875\n",
            },
        },
        {
            CONTENT: (
                (Call("read_skill", {"name": "blog-post"}),),
                (task("researcher", FOUND),),
                write("/research/gallium.md", "{results}\n"),
                write("/blogs/gallium/post.md", "A metal for your hand.\n\n- found in 1875\n"),
                "It is in /blogs/gallium/post.md.",
            ),
            FOUND: (
                (Call("web_search", {"query": "gallium discovery"}),),
                "- {results}",
            ),
        },
        KEPT,
        ("No jargon.", "How a blog post is built."),
    ),
}


def find_turn(example: Example, messages: list[tuple[str, str]]) -> str | tuple[Call, ...]:
    """What the model answers.

    Args:
        example: the example.
        messages: what it was sent: ``"system"``, ``"user"``, ``"assistant"`` or ``"tool"``, and the text.

    Raises:
        LookupError: the example does not say, or the system prompt lacks what it must have.
    """
    first = next(text for role, text in messages if role == "user")
    system = "\n".join(text for role, text in messages if role == "system")
    if first == next(iter(example.turns)) and (missing := [each for each in example.told if each not in system]):
        raise LookupError(f"the system prompt lacks {missing}")
    turns = example.turns.get(first, ())
    done = [number for number, (role, _) in enumerate(messages) if role == "assistant"]
    if len(done) >= len(turns):
        raise LookupError(f"the example has no turn {len(done)} after {first!r}")
    results = "\n".join(text for role, text in messages[done[-1] if done else 0 :] if role == "tool")
    turn = turns[len(done)]
    if isinstance(turn, str):
        return turn.replace("{results}", results)
    return tuple(Call(each.tool, {key: fill(value, results) for key, value in each.arguments.items()}) for each in turn)


def fill(value: Any, results: str) -> Any:
    return value.replace("{results}", results) if isinstance(value, str) else value


def put_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def read_files(folder: Path) -> dict[str, str]:
    """The files in a folder, by their path in it."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
