"""``python -m locus`` is the command of whichever distribution has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def install_script(site: Path, reference: str) -> None:
    """A distribution with a console script `locus`, as an installer leaves it."""
    info = site / "commands-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: commands\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nlocus = {reference}\n")


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``python -m locus`` where only these distributions are installed."""
    program = (
        "import runpy, sys, sysconfig; import locus, importlib_metadata; "
        f"sys.path[:] = [{str(site)!r}, sysconfig.get_path('stdlib')]; "
        "runpy.run_module('locus', run_name='__main__', alter_sys=True)"
    )
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("returned", "status"), [("None", 0), ("0", 0), ("3", 3)])
def test_module_runs_the_installed_command_and_gives_its_status(tmp_path: Path, returned: str, status: int) -> None:
    install_script(tmp_path, "commands:main")
    (tmp_path / "commands.py").write_text(f"import sys\ndef main():\n    print(sys.argv[1:])\n    return {returned}\n")

    done = run(tmp_path, "run", "a b")

    assert (done.returncode, done.stdout, done.stderr) == (status, "['run', 'a b']\n", "")


def test_without_a_command_one_line_says_what_is_missing_and_where(tmp_path: Path) -> None:
    done = run(tmp_path, "run", "x")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"locus: no package in {sys.prefix} provides the command 'locus'; install ")
    assert done.stderr.count("\n") == 1
