"""What a rule is about: names with a dot, what is below a directory, paths in any spelling, and edits, which read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus import Agent, tool
from locus.core.errors import SettingsError
from locus.files import virtual_path
from locus.plugins.discovery import Catalogue
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_filesystem.permissions import Rules
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)

PARTS = st.text("ab.é-", min_size=1, max_size=4).filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: virtual_path("/".join(parts)))


async def said(*calls: Any, **settings: Any) -> list[str]:
    """What the tools answered to calls, each in a turn of its own."""
    made: Agent[Any, str] = Agent(ScriptedModel(*calls, "done"), filesystem=settings, catalogue=INSTALLED)
    done = (await made.run("go")).state.tool_executions
    return [str(each.error if each.result is None else each.result) for each in done]


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("deny /secrets/**", "/secrets/.env"),
        ("deny /**", "/.git/hooks/pre-commit"),
        ("deny /*", "/.env"),
        ("deny /**/*.key", "/a/.hidden/x.key"),
        ("deny /**/*.env", "/a/.env"),
        ("deny /**/[!a]env", "/.env"),
        ("deny /{src,docs}/**", "/docs/.env"),
        ("deny /secrets", "/secrets/key"),
        ("deny /secrets/", "/secrets/key"),
        ("deny //secrets/./**", "/secrets/key"),
        ("deny /", "/key"),
        ("deny /cafe\u0301/**", "/caf\u00e9/key"),
    ],
)
async def test_a_rule_holds_for_every_path_that_it_seems_to_be_about(rule: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / path[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("hush")
    calls = [call("read_file", path=path), call("write_file", path=path, contents="x"), call("grep", pattern="hush")]
    read, write, found = await said(*calls, root=tmp_path, permissions=[rule])

    assert "permission_denied" in read
    assert "permission_denied" in write
    assert "hush" not in found
    assert file.read_text() == "hush"


async def test_a_rule_with_wildcards_is_about_what_it_matches_and_a_path_without_them_about_all_below() -> None:
    rules = Rules(["allow /notes", "allow /*.md", "deny /**"])
    allowed = ["/notes", "/notes/a", "/notes/a/.b", "/a.md"]
    denied = ["/notes2", "/x.md/a", "/a/b.md", "/other"]

    assert [path for path in allowed + denied if rules.action(path, "read") == "allow"] == allowed


@given(PATHS)
def test_two_stars_are_about_every_path(path: str) -> None:
    assert Rules(["deny /**"]).action(path, "read") == "deny"


@given(PATHS, PATHS)
def test_a_path_as_a_rule_is_about_itself_and_all_below(folder: str, path: str) -> None:
    rules = Rules([f"deny {folder}/"])

    assert rules.action(folder, "write") == "deny"
    assert rules.action(folder + path, "write") == "deny"


@pytest.mark.parametrize("rule", ["deny /a/../secrets/**", "deny /..", "deny /a\nb"])
def test_a_rule_that_no_path_can_match_is_refused(rule: str) -> None:
    with pytest.raises(SettingsError, match="is not a rule"):
        Agent(ScriptedModel("x"), filesystem={"permissions": [rule]}, catalogue=INSTALLED)


async def test_an_edit_needs_what_a_read_needs_since_its_answer_tells_what_is_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hush")
    edit = call("edit_file", path="/key", old_str="hush", new_str="hush")
    denied = await said(edit, root=tmp_path, permissions=["deny read /key"])
    settings = {"root": tmp_path, "permissions": ["ask read /key"]}
    made: Agent[Any, str] = Agent(ScriptedModel(edit), filesystem=settings, catalogue=INSTALLED)

    assert denied == ["Rejected: permission_denied: a rule forbids to read /key"]
    assert len((await made.run("go")).interrupts) == 1


async def test_a_question_shows_what_is_written_and_every_character_of_the_path() -> None:
    write = call("write_file", path="/a/../run\u202etxt.sh", contents="rm\u200b -r")
    made: Agent[Any, str] = Agent(
        ScriptedModel(write), filesystem={"permissions": ["ask write /**"]}, catalogue=INSTALLED
    )
    (asked,) = (await made.run("go")).interrupts

    assert asked.question == (
        r'May write_file write /run\u202etxt.sh? write_file(path="/a/../run\u202etxt.sh", contents="rm\u200b -r")'
    )


async def test_large_results_are_written_to_no_place_that_rules_protect(tmp_path: Path) -> None:
    @tool(effect="pure")
    def fetch() -> str:
        """Fetch."""
        return "x" * 90_000

    for rule in ("deny write /**", "ask write /**"):
        settings = {"root": tmp_path / "root", "permissions": [rule]}
        made: Agent[Any, str] = Agent(
            ScriptedModel(call("fetch"), "done"), tools=[fetch], filesystem=settings, catalogue=INSTALLED
        )
        await made.run("go")

    assert not (tmp_path / "root" / "large_results").exists()
