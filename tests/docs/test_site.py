"""The documentation site: its reference has everything that is public. `tox -e docs` builds it and checks links."""

from __future__ import annotations

import importlib
import re

import pytest
from docs import diagram, reference
from tests.docs.markdown import ROOT, pages
from tests.public_api import MODULES

from locus.core.errors import LocusError
from locus.core.events import event_types
from locus.hooks.specs import HOOKS
from locus.loop.router import Node


@pytest.fixture(scope="module")
def built() -> dict[str, str]:
    return reference.pages()


def test_every_public_name_is_in_the_reference(built: dict[str, str]) -> None:
    public = {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}
    text = "\n".join(built.values())
    there = {*re.findall(r"^::: (\S+)$", text, re.M), *re.findall(r'\bid="([\w.]+)"', text)}
    there |= set(re.findall(r"\{#([\w.]+)\}", text))
    assert public - there == set()


def test_a_name_that_two_modules_offer_is_described_once(built: dict[str, str]) -> None:
    described = re.findall(r"^::: (\S+)$", "\n".join(built.values()), re.M)
    assert len(described) == len(set(described))
    assert reference.names()["locus.ThinkEvent"] == "locus.core.events.ThinkEvent"
    assert "::: locus.core.events.ThinkEvent" in built["reference/locus.core.events.md"]


def test_every_hook_is_in_the_reference_with_its_signature(built: dict[str, str]) -> None:
    text = built["reference/hooks.md"]
    assert [name for name in HOOKS if f"`{name}`" not in text] == []
    own = [info for name, info in HOOKS.items() if info.function.__name__ == name]
    assert [info.name for info in own if f"\ndef {info.name}(" not in text] == []
    assert (
        "def locus_decide_tool_call(call: ToolCall, run: RunContext) -> Decision | Continue | None: ..." in text
        or "    call: ToolCall,\n    run: RunContext,\n) -> Decision | Continue | None: ..." in text
    )


def test_every_event_is_in_the_reference(built: dict[str, str]) -> None:
    own = {cls.__name__ for cls in event_types().values() if cls.__module__ == "locus.core.events"}
    assert {name for name in own if f"## `{name}` " not in built["reference/events.md"]} == set()


def test_every_error_is_in_the_reference_below_its_base(built: dict[str, str]) -> None:
    lines = built["reference/errors.md"].splitlines()
    depths = {match[2]: len(match[1]) // 4 for line in lines if (match := re.match(r"( *)- \[`(\w+)`\]", line))}
    errors = importlib.import_module("locus.core.errors")
    known = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert set(depths) == known
    assert {name for name in known if depths[name] != getattr(errors, name).__mro__.index(LocusError)} == set()


def test_every_installed_plugin_is_in_the_reference(built: dict[str, str]) -> None:
    folders = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    assert {name for name in folders if f"\n## {name}\n" not in built["reference/settings.md"]} == set()
    assert "| `sync` | `Sync` | `'full'` |" in built["reference/settings.md"]


def test_commands_of_plugins_are_in_the_reference(built: dict[str, str]) -> None:
    text = built["reference/commands.md"]
    assert [name for name in ("run", "threads list", "worker", "config trust") if f"`locus {name}`" not in text] == []


def test_a_public_constant_needs_a_comment() -> None:
    with pytest.raises(ValueError, match="has no comment"):
        [*reference._constant("locus.core.NOT_THERE", object())]


def test_a_public_function_needs_a_docstring() -> None:
    def bare() -> None: ...

    with pytest.raises(ValueError, match=r"locus\.bare is public and has no docstring"):
        reference._describe("locus.bare", bare)


def test_the_diagram_has_each_edge_of_the_router() -> None:
    assert (Node.EXECUTE, Node.REFLECT) in diagram.edges()
    assert diagram.loop().count('class="edge"') == len(diagram.edges())


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    folder = ROOT / "docs" / "pages"
    assert [page for page in pages() if page.relative_to(folder).as_posix() not in listed] == []
