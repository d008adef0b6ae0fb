"""``locus plugin new``: what it writes, what it refuses, and that the result works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

import pytest

from locus_plugin_cli.scaffold import KINDS

Locus = Callable[..., Any]
NAMES = {"name": "audit", "package": "locus_plugin_audit"}
CHECKOUT = Path(__file__).resolve().parents[3]


def test_project_is_written_under_one_name(locus: Locus, here: Path) -> None:
    done = locus("plugin", "new", "night_watch")

    project = here / "locus-plugin-night-watch"
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())
    assert done.status == 0
    assert "src/locus_plugin_night_watch/hooks.py" in done.out
    assert pyproject["project"]["name"] == "locus-plugin-night-watch"
    assert pyproject["project"]["entry-points"]["locus.plugins"] == {
        "night_watch": "locus_plugin_night_watch.manifest:plugin"
    }
    assert 'name="night_watch"' in (project / "src/locus_plugin_night_watch/manifest.py").read_text()


@pytest.mark.parametrize("kinds", [c for n in (1, 2, 3) for c in combinations(KINDS, n)])
def test_every_combination_of_kinds_is_complete(locus: Locus, here: Path, kinds: tuple[str, ...]) -> None:
    options = [word for kind in kinds for word in ("--kind", kind)]

    assert locus("plugin", "new", "audit", *options, "--dir", "made").status == 0

    files = {path.relative_to(here / "made").as_posix() for path in (here / "made").rglob("*") if path.is_file()}
    for kind in kinds:
        assert {Template(path).substitute(NAMES) for path in KINDS[kind].files.values()} <= files
    for path in files:
        text = (here / "made" / path).read_text()
        assert not re.search(r"\$[a-z{]", text), path
        if path.endswith(".py"):
            compile(text, path, "exec")


def test_model_is_a_provider_over_http(locus: Locus, here: Path) -> None:
    assert locus("plugin", "new", "night_watch", "--kind", "model", "--dir", "made").status == 0

    project = tomllib.loads((here / "made" / "pyproject.toml").read_text())["project"]
    assert "locus-wire>=0.1,<0.2" in project["dependencies"]
    assert "locus_wire" in (here / "made" / "src/locus_plugin_night_watch/model.py").read_text()
    tests = (here / "made" / "tests/test_night_watch_model.py").read_text()
    assert {"LocalServer", "ModelContract"} <= set(re.findall(r"\w+", tests))
    assert 'api_key = { env = "NIGHT_WATCH_API_KEY" }' in (here / "made" / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Night-Watch", "such as 'night_watch'"),
        ("1st", "use lower-case letters"),
        ("", "use lower-case letters"),
        ("../up", "such as 'up'"),
        ("class", "a word of Python"),
        ("model", "an option of Agent"),
        ("toy", "is installed already"),
    ],
)
def test_bad_name_is_refused(locus: Locus, here: Path, name: str, said: str) -> None:
    done = locus("plugin", "new", name)

    assert said in done.err
    assert (done.status, len(done.lines)) == (2, 1)
    assert list(here.iterdir()) == []


def test_nothing_is_overwritten(locus: Locus, here: Path) -> None:
    (here / "taken").mkdir()
    (here / "taken" / "mine.txt").write_text("mine")
    (here / "file").write_text("mine")

    for folder in ("taken", "file"):
        done = locus("plugin", "new", "audit", "--dir", folder)
        assert done.status == 2
        assert "nothing is overwritten" in done.err

    assert [path.name for path in (here / "taken").iterdir()] == ["mine.txt"]
    assert (here / "file").read_text() == "mine"


def test_empty_folder_is_filled(locus: Locus, here: Path) -> None:
    (here / "empty").mkdir()

    assert locus("plugin", "new", "audit", "--dir", "empty").status == 0
    assert (here / "empty" / "pyproject.toml").is_file()


@pytest.mark.parametrize("folder", ["file/below", "x" * 300], ids=["below a file", "long"])
def test_folder_that_cannot_be_made_is_one_line(locus: Locus, here: Path, folder: str) -> None:
    (here / "file").write_text("")

    done = locus("plugin", "new", "audit", "--dir", folder)

    assert (done.status, len(done.lines)) == (2, 1)
    assert "cannot be written" in done.err


def test_unknown_kind_is_refused(locus: Locus) -> None:
    assert locus("plugin", "new", "audit", "--kind", "hok").status == 2


@pytest.mark.parametrize("parent", ["", "[tool.pytest.ini_options]\n"])
def test_two_projects_are_tested_in_one_call(
    locus: Locus, here: Path, site: Path, install: Callable[..., Path], parent: str
) -> None:
    (here / "pyproject.toml").write_text(parent)
    every = [word for kind in KINDS for word in ("--kind", kind)]
    for name in ("audit", "night_watch"):
        assert locus("plugin", "new", name, *every).status == 0
        package = f"locus_plugin_{name}"
        info = install(site, package, points=f"{name} = {package}.manifest:plugin")
        with (info / "METADATA").open("a") as metadata:
            metadata.write("\nThe README.\n")
    folders = sorted(path.name for path in here.glob("locus-plugin-*"))
    sources = [str(site), *(str(here / folder / "src") for folder in folders)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders],
        cwd=here,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.e2e
@pytest.mark.parametrize("kinds", [("hook",), ("tool",), ("model",), ("hook", "tool", "model")])
def test_written_project_builds_installs_and_passes_its_tests(locus: Locus, here: Path, kinds: tuple[str, ...]) -> None:
    options = [word for kind in kinds for word in ("--kind", kind)]
    assert locus("plugin", "new", "night_watch", *options, "--dir", "project").status == 0
    # An environment with nothing but the kernel, the test kit and the new plugin, each built into a wheel.
    python = here / "clean" / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv = shutil.which("uv")
    wanted = [str(CHECKOUT / part) for part in ("core", "contrib/testkit", "contrib/wire")]
    wanted.append(str(here / "project"))
    if uv is not None:
        ran([uv, "venv", "--quiet", "--python", sys.executable, str(here / "clean")], here)
        ran([uv, "pip", "install", "--quiet", "--python", str(python), *wanted], here)
    else:
        ran([sys.executable, "-m", "venv", str(here / "clean")], here)
        ran([str(python), "-m", "pip", "install", "--quiet", *wanted], here)

    said = ran([str(python), "-m", "pytest", "-q"], here / "project")

    assert " passed" in said
    assert "failed" not in said


def ran(command: list[str], folder: Path) -> str:
    """Run a program to its good end; gives its output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
