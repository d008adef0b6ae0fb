"""A name of the kernel that a text mentions in backticks exists: in docstrings, in comments and in documents."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT

#: A module or a name in it, such as `locus.core.state` or `locus.tools.call_key(...)`.
MENTIONED = re.compile(r"`(locus(?:\.\w+)+)(?:\([^`]*\))?`")
#: ``"locus.run_id"``: a file, a logger, an attribute of a span, which is a text and not a name of Python.
QUOTED = re.compile(r"[\"'](locus(?:\.\w+)+)[\"']")


@cache
def texts() -> dict[str, str]:
    """The tracked sources and documents, but for the template of a plugin, which is rendered first."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines() if "/template/" not in line]
    return {str(path): (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).is_file()}


@cache
def exists(name: str) -> bool:
    """Whether a module, or an attribute or a field of what is in one, has that dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


def test_every_dotted_name_in_backticks_exists() -> None:
    quoted = {name for path, text in texts().items() if "/src/" in path for name in QUOTED.findall(text)}
    wrong = [
        f"{path}: {name}"
        for path, text in sorted(texts().items())
        for name in sorted(set(MENTIONED.findall(text)))
        if not exists(name) and name not in quoted
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("locus.core.state.AgentState.with_message", True),
        ("locus.core.events.ThinkEvent.reasoning", True),
        ("locus.hooks.specs", True),
        ("locus.core.state.AgentStat", False),
        ("locus.core.stat", False),
    ],
)
def test_a_name_that_is_not_there_is_found_out(name: str, there: bool) -> None:
    assert exists(name) is there
