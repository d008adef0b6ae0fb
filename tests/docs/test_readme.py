"""The documents are followed as a reader would follow them: every program runs, and prints what they say."""

from __future__ import annotations

import ast
import codeop
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import importlib_metadata
import pytest
from hypothesis import settings
from tests.docs.markdown import ROOT, Block, blocks, documents, pages, readings
from tests.docs.session import Session, console

from locus.plugins.discovery import GROUP

DOCUMENTS = documents()
WRITTEN = [*DOCUMENTS, *pages()]
README = ROOT / "README.md"

_LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\)")


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def only(name: str) -> Block:
    """The one block of the README with that comment."""
    (found,) = [block for block in blocks(README) if name in block.comments]
    return found


def places(module: ModuleType) -> list[str]:
    """Where a module, or a package without `__init__`, was found."""
    return [path for path in (getattr(module, "__file__", None), *getattr(module, "__path__", ())) if path]


@pytest.fixture
def scripted_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed, with a scripted model behind the name of the embedded one."""
    installed = importlib_metadata.entry_points
    stand_in = importlib_metadata.EntryPoint("llamacpp", "tests.docs.stand_in:plugin", GROUP)

    def entry_points(**wanted: Any) -> Any:
        found = installed(**wanted)
        if wanted.get("group") != GROUP:
            return found
        return [*(point for point in found if point.name != stand_in.name), stand_in]

    monkeypatch.setattr(importlib_metadata, "entry_points", entry_points)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to follow a document in: the current one, and importable, as it is for who types `python`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("LOCUS_PLUGINS", raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if any(Path(place).is_relative_to(tmp_path) for place in places(sys.modules[name])):
            del sys.modules[name]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the code of a document runs in: a real module, since annotations are looked up in `sys.modules`."""
    made = ModuleType("locus_document")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


@pytest.fixture
def few_examples() -> Iterator[None]:
    """Property tests of a document try a few examples only."""
    usual = settings.get_current_profile_name()
    settings.load_profile("document")
    yield
    settings.load_profile(usual)


@pytest.mark.proof
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("paths", readings(), ids=lambda paths: shown(paths[0]))
@pytest.mark.usefixtures("scripted_provider", "few_examples")
def test_a_document_can_be_followed(paths: tuple[Path, ...], backend: str, module: ModuleType, folder: Path) -> None:
    session = Session(module, folder, backend)
    for block in [block for path in paths for block in blocks(path)]:
        # Commands are other processes: they do not depend on the backend.
        session.follow(block, commands=backend == "asyncio")


@pytest.mark.parametrize("path", [path for path in pages() if path.parent.name == "tutorial"], ids=shown)
def test_blocks_of_the_tutorial_can_be_pasted_into_python(path: Path) -> None:
    """Line by line: before Python 3.13, an empty line ends what is indented, and a line at the margin does not."""
    compiled = codeop.CommandCompiler()
    compiled.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for block in blocks(path):
        if block.language == "python" and "file" not in block.comments:
            held: list[str] = []
            for line in [*block.text.splitlines(), ""]:
                held.append(line)
                if compiled("\n".join(held), block.where) is not None:
                    held.clear()
            assert not any(held), f"{block.where}: {held} is not finished"


@pytest.mark.parametrize("path", WRITTEN, ids=shown)
def test_links_lead_somewhere(path: Path) -> None:
    targets = _LINK.findall(path.read_text(encoding="utf-8"))
    # The pages of the reference are made when the site is built, which checks the links to them.
    assert [target for target in targets if "reference/" not in target and not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", WRITTEN, ids=shown)
def test_a_document_begins_with_its_title_and_fits_its_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    # Tables and commands cannot be wrapped.
    assert [line for line in lines if len(line) > 130 and not line.startswith(("|", "$", "<!--"))] == []


# --- the two commands ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", WRITTEN, ids=shown)
def test_what_is_installed_from_the_checkout_is_there(path: Path) -> None:
    for block in blocks(path):
        for folder, extra in re.findall(r"(\./[\w/]+)(?:\[([\w.-]+)\])?", block.text) if block.language == "sh" else ():
            project = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
            assert not extra or f'"{extra}" = [' in project, f"{block.where}: {folder} has no extra {extra}"


@pytest.mark.parametrize("path", WRITTEN, ids=shown)
def test_an_installation_names_every_distribution_of_the_checkout_that_it_needs(path: Path) -> None:
    """pip would look for the others at the package index."""
    folders = {
        p.parent: tomllib.loads(p.read_text(encoding="utf-8"))["project"] for p in ROOT.glob("*/*/pyproject.toml")
    }
    folders[ROOT / "core"] = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = {project["name"] for project in folders.values()}
    for block in blocks(path):
        named = re.findall(r"(?<=[\s\"'])\./[\w/]+", block.text) if block.language == "sh" else ()
        projects = [folders[ROOT / folder] for folder in named if ROOT / folder in folders]
        if len(projects) < 2:
            continue  # an addition to what is installed
        needed = {re.split(r"[<>=!~ \[;]", line)[0] for project in projects for line in project["dependencies"]} & ours
        assert needed - {project["name"] for project in projects} == set(), block.where


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_a_page_says_how_to_install_what_its_programs_import(path: Path) -> None:
    folders = {"locus_testkit": "./contrib/testkit"}
    folders |= {f"locus_plugin_{p.parent.name}": f"./plugins/{p.parent.name}" for p in ROOT.glob("plugins/*/README.md")}
    text = path.read_text(encoding="utf-8")
    programs = "".join(block.text for block in blocks(path) if block.language == "python")
    imported = {name for name in folders if re.search(rf"^ *(?:from|import) {name}\b", programs, re.MULTILINE)}
    installed = {*re.findall(r"\./(?:contrib|plugins)/\w+", text)} | {f"./{path.parent.relative_to(ROOT).as_posix()}"}
    assert {folders[name] for name in imported} - installed == set()


def test_the_run_command_names_tools_that_are_there() -> None:
    (tools,) = re.findall(r"--tools (\S+)", only("run-command").text)
    assert (ROOT / tools).is_file()


def test_the_test_command_is_what_ci_runs() -> None:
    """`.ci/run` reads the command out of the README; the block must be the one that it finds."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    program = re.search(r"awk '(.*?)' README\.md", script, re.DOTALL)
    assert program is not None
    found = subprocess.run(["awk", program[1], README], capture_output=True, text=True, check=True).stdout
    assert found.strip() == only("test-command").text.strip()
    assert "tox" in found


def test_the_recorded_run_is_one_of_the_run_command() -> None:
    recorded = console(only("recorded-run").text)
    typed = only("run-command").text.replace("\\\n", " ")
    assert [command for command, _ in recorded] == [" ".join(typed.split("&&")[-1].split())]
    assert recorded[0][1].strip(), "the recording is missing"
