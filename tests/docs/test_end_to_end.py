"""What the README tells a reader to type, typed: with a real model, and in a fresh environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, blocks, documents
from tests.docs.session import console, run
from tests.docs.test_readme import README, only

pytestmark = pytest.mark.e2e

#: The page names the default model; these runs take the small one that the environment has.
DEFAULT, SMALL = "llamacpp:qwen2.5-coder-1.5b", "llamacpp:qwen2.5-coder-0.5b"


def checkout(folder: Path) -> Path:
    """A copy of what is in version control, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def test_the_run_command_does_what_it_says(tmp_path: Path) -> None:
    """From nothing but Python, pip and git to an answer of a model that used a tool."""
    environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environ = {"LOCUS_CACHE": str(tmp_path / "cache"), **environ, "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", only("run-command").text],
        cwd=checkout(tmp_path / "checkout"),
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "7006652" in done.stdout
    assert "NoToolCalls" in done.stdout


def test_the_first_program_runs_with_a_real_model(tmp_path: Path) -> None:
    program = next(block.text for block in blocks(README) if block.language == "python")
    assert DEFAULT in program
    (tmp_path / "program.py").write_text(program.replace(DEFAULT, SMALL))
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["-> stock {'item': 'lamp'}", "<- 4"]
    assert done.stdout.rstrip().endswith("[NoToolCalls]")


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_that_need_a_model_run(path: Path, tmp_path: Path) -> None:
    (tmp_path / "locus.toml").write_text(f'[agent]\nmodel = "{SMALL}"\n')
    assert run("locus config trust", tmp_path).returncode == 0
    for block in blocks(path):
        if "file" in block.comments:
            (tmp_path / block.comments["file"]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.comments["file"]).write_text(block.text)
        for command, _ in console(block.text) if "e2e" in block.comments else ():
            done = run(command.replace(DEFAULT, SMALL), tmp_path)
            assert done.returncode == 0, f"{block.where}: {command!r}\n{done.stdout}"
