"""A user's program type-checks under `mypy --strict`, against the packages as they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.typing.user_program import Report, conditions_combine, main

PROGRAM = Path(__file__).with_name("user_program.py")
CACHE = Path(__file__).resolve().parent.parent.parent / ".mypy_cache" / "programs"


def checked(folder: Path, *arguments: str) -> str:
    """What mypy says, in a folder without the configuration of this repository."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(CACHE), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False).stdout


def test_a_users_program_type_checks(tmp_path: Path) -> None:
    said = checked(tmp_path, str(PROGRAM))
    assert "Success: no issues found in 1 source file" in said, said


def test_the_check_can_fail(tmp_path: Path) -> None:
    """Without the types of the installed packages everything would be Any, and nothing an error."""
    (tmp_path / "wrong.py").write_text(
        "from locus import Agent, tool\n\n\n@tool\ndef stock(item: str) -> int:\n    return 1\n\n\n"
        'wrong: str = stock("lamp")\nAgent(model=3)\n'
    )
    said = checked(tmp_path, "wrong.py")
    assert "wrong.py:9: error: Incompatible types in assignment" in said
    assert 'wrong.py:10: error: Argument "model" to "Agent" has incompatible type "int"' in said


@pytest.mark.anyio
async def test_a_users_program_runs() -> None:
    assert await main() == Report(item="lamp", pieces=4)
    assert conditions_combine().bounds().iterations == 8
