"""The reference says what the code says: every hook, event, keyword, option and error, and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from tests.docs.markdown import ROOT, blocks, documents, pages
from tests.docs.stubs import differences, drawn
from tests.docs.tables import codes, section, table
from tests.public_api import MODULES

from locus import Agent, Event
from locus.config import AgentDefaults, load_config
from locus.core import errors, events
from locus.core import termination as conditions
from locus.core.directives import Decision, Directive, Verdict
from locus.core.errors import LocusError
from locus.core.events import event_types
from locus.hooks.specs import HOOKS
from locus.plugins.manifest import Plugin
from locus.plugins.report import Status
from locus.tools import ToolOptions, tool

README, REFERENCE = ROOT / "README.md", ROOT / "core" / "README.md"


def stubs(path: Path) -> str:
    return "\n".join(block.text for block in blocks(path) if block.language == "pyi")


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    return {name: p for name, p in inspect.signature(function).parameters.items() if name != "self"}


@pytest.mark.parametrize("path", [*documents(), *pages()], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_signature_is_that_of_the_code(path: Path) -> None:
    assert differences(stubs(path)) == []


# --- hooks and events ----------------------------------------------------------------------------


def test_every_hook_is_documented() -> None:
    written = {node.name for node in ast.parse(stubs(REFERENCE)).body if isinstance(node, ast.FunctionDef)}
    # The hooks of single events are those of `locus_on_event`, one for each event in the table.
    own = {name for name, info in HOOKS.items() if info.function.__name__ == name}
    missing = "\n".join(drawn(name) for name in own if name not in written)
    assert not missing, f"core/README.md lacks:\n{missing}"
    assert {name for name in written if name.startswith("locus_")} == own


def test_every_event_has_its_hook_and_every_hook_its_event() -> None:
    kernel = {tag for tag, cls in event_types().items() if cls.__module__ == events.__name__}
    heard = {name.removeprefix("locus_on_") for name in HOOKS if name.startswith("locus_on_")} - {"event"}
    assert heard == kernel


def test_every_event_is_documented_with_its_fields() -> None:
    known = {
        cls.__name__: (tag, [a.name for a in attrs.fields(cls) if a.name not in attrs.fields_dict(Event)])
        for tag, cls in event_types().items()
        if cls.__module__ == events.__name__
    }
    rows = table(REFERENCE, "event")
    written = {codes(row[0])[0]: (codes(row[1])[0], codes(row[2])) for row in rows}
    assert written == known
    assert all(row[3] for row in rows)


def test_the_envelope_of_events_is_documented() -> None:
    text = section(REFERENCE, "Events").split("\n\n")[1]
    assert [name for name in attrs.fields_dict(Event) if f"`{name}`" not in text] == []


def test_every_answer_of_a_hook_is_documented() -> None:
    answers = {cls.__name__ for union in (Directive, Decision, Verdict) for cls in get_args(union)}
    written = {name.partition("(")[0] for row in table(README, "directive") for name in codes(row[0])}
    # Allow and Accept are what None means to those who are asked.
    assert answers - written == {"Allow", "Accept"}
    assert written - answers == {"None"}


# --- what can be configured ----------------------------------------------------------------------


def test_every_keyword_of_an_agent_is_documented() -> None:
    known = {
        name: repr(p.default)
        for name, p in parameters(Agent.__init__).items()
        if p.kind is not inspect.Parameter.VAR_KEYWORD
    }
    rows = table(REFERENCE, "keyword")
    assert {codes(row[0])[0]: repr(ast.literal_eval(codes(row[1])[0])) for row in rows} == known
    assert all(row[2] for row in rows)


def test_every_keyword_of_an_agent_is_in_its_docstring() -> None:
    doc = inspect.getdoc(Agent.__init__) or ""
    assert [name for name in parameters(Agent.__init__) if f"    {name}: " not in doc] == []


def test_every_option_of_a_tool_is_documented() -> None:
    assert [codes(row[0])[0] for row in table(REFERENCE, "option of `tool`")] == [*ToolOptions.__annotations__]


def test_the_options_of_a_tool_have_the_documented_defaults() -> None:
    def plain(text: str) -> str:
        """A tool with every default."""
        return text

    made = tool(plain)
    said = {codes(row[0])[0]: codes(row[1]) for row in table(REFERENCE, "option of `tool`")}
    assert {n: ast.literal_eval(code[0]) for n, code in said.items() if code} == {
        n: getattr(made, n) for n, code in said.items() if code
    }


def test_every_field_of_a_manifest_is_documented() -> None:
    known = {a.name: "" if a.default is attrs.NOTHING else repr(a.default) for a in attrs.fields(Plugin)}
    assert {codes(r[0])[0]: "".join(codes(r[1])) for r in table(REFERENCE, "field of `Plugin`")} == known


def test_every_status_of_a_plugin_is_documented() -> None:
    text = section(REFERENCE, "Plugins")
    assert [status for status in get_args(Status) if f"`{status}`" not in text] == []


def test_every_key_of_the_configuration_is_documented(tmp_path: Path) -> None:
    written = [codes(row[0])[0] for row in table(REFERENCE, "key")]
    agent = [f"agent.{a.name}" for a in attrs.fields(AgentDefaults)]
    assert written == ["required", "allow", "plugins.enabled", "plugins.<name>", *agent]
    path = tmp_path / "locus.toml"
    path.write_text('required = ["a"]\n[plugins]\nenabled = ["b"]\n[plugins.name]\nx = 1\n')
    found = load_config(path)
    assert (found.required, found.enabled, [*found.plugin_settings]) == (("a",), ("b",), ["name"])


def test_every_condition_is_documented() -> None:
    known = {
        name
        for name in conditions.__all__
        if isinstance(cls := getattr(conditions, name), type)
        and issubclass(cls, conditions.TerminationCondition)
        and not inspect.isabstract(cls)
        and not name.startswith(("And", "Or", "Not"))
    }
    rows = table(README, "condition")
    written = {codes(row[0])[0].partition("(")[0]: codes(row[0])[0] for row in rows}
    assert set(written) == known
    for name, shown in written.items():
        said = [argument for argument in re.findall(r"\w+", shown.partition("(")[2]) if argument]
        assert said == [*parameters(getattr(conditions, name).__init__)][: len(said)], shown


# --- errors and modules --------------------------------------------------------------------------


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    drawing = next(b.text for b in blocks(REFERENCE) if b.text.startswith("LocusError\n"))
    line_of_descent: list[str] = []
    written: set[tuple[str, str]] = set()
    for line in drawing.splitlines()[1:]:
        depth, name = (len(line) - len(line.lstrip("│├└─ "))) // 4, line.lstrip("│├└─ ")
        line_of_descent[depth - 1 :] = [name]
        written.add((["LocusError", *line_of_descent][-2], name))
    classes = [cls for name in errors.__all__ if isinstance(cls := getattr(errors, name), type)]
    assert written == {
        (cls.__base__.__name__, cls.__name__) for cls in classes if cls is not LocusError and cls.__base__
    }


def test_the_public_modules_are_documented() -> None:
    assert [codes(row[0])[0] for row in table(REFERENCE, "module")] == [*MODULES]
    assert [name for name in MODULES if not hasattr(importlib.import_module(name), "__all__")] == []


# --- the command line, and the layout ------------------------------------------------------------


def helped(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "locus_plugin_cli", *command, "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


def options(text: str) -> set[str]:
    """The options that a help text explains, both spellings of each."""
    return {
        name for line in text.splitlines() if line.startswith("  -") for name in re.findall(r"(?<!\S)--?[\w-]+", line)
    }


def test_every_option_of_run_is_documented() -> None:
    written = {
        name for row in table(README, "option of `locus run`") for code in codes(row[0]) for name in [code.split()[0]]
    }
    assert written == options(helped("run")) - {"-h", "--help"}


def test_every_command_is_documented() -> None:
    commands = re.findall(r"^  (\w+) ", helped().partition("Commands:")[2], re.M)
    written = [codes(row[0])[0].split()[1] for row in table(README, "command")]
    assert written == commands
    inspected = {code.split()[0] for row in table(README, "command") if "plugins`" in row[0] for code in codes(row[1])}
    assert inspected == set(re.findall(r"^  (\w+) ", helped("plugins").partition("Commands:")[2], re.M))


def test_the_layout_names_every_distribution() -> None:
    rows = table(README, "folder")
    folders = {match[1] for row in rows if (match := re.match(r"\[(.*?)\]", row[0]))}
    assert folders == {path.parent.relative_to(ROOT).as_posix() for path in documents()} - {"."}
    for row in rows:
        folder = re.sub(r"\[(.*?)\].*", r"\1", row[0])
        assert f'name = "{codes(row[1])[0]}"' in (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")


def test_the_environments_are_those_of_tox() -> None:
    written = {code for row in table(README, "environment") for code in codes(row[0])}
    listed = re.search(r"^env_list = (.*)$", (ROOT / "tox.ini").read_text(encoding="utf-8"), re.M)
    assert listed is not None
    assert written == set(listed[1].split(", "))
