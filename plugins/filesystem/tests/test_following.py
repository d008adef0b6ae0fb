"""Files that follow the conversation: on the next turn, after a resume, in children; permissions and quotas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, AgentResult, tool
from locus.core.errors import SettingsError
from locus.core.messages import Role
from locus.files import BackendProtocol
from locus.journal import MemoryStore
from locus.plugins.discovery import Catalogue
from locus.tools import ToolContext
from locus_plugin_filesystem import StateBackend
from locus_plugin_filesystem.manifest import plugin
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)


def agent(*script: Any, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(*script), **{"filesystem": True, "catalogue": INSTALLED, **options})


def results(result: AgentResult[Any]) -> list[str]:
    """What the tools said, errors included, in order."""
    return [each.result if each.result is not None else str(each.error) for each in result.state.tool_executions]


def files(result: AgentResult[Any]) -> dict[str, str]:
    """The files in the state of a run."""
    metadata = result.state.metadata
    return {key.removeprefix("files"): value["text"] for key, value in metadata.items() if key.startswith("files/")}


WRITE = call("write_file", path="/a.md", contents="one\n")
READ = call("read_file", path="/a.md")


async def test_a_written_file_is_read_in_the_next_turn_and_is_in_the_state() -> None:
    result = await agent(WRITE, READ, "done").run("go")

    assert results(result) == ["/a.md", "     1\tone"]
    assert files(result) == {"/a.md": "one\n"}


async def test_files_come_back_with_the_thread() -> None:
    store = MemoryStore()
    await agent(WRITE, "done", checkpointer=store).run("go", thread_id="t")
    edit = call("edit_file", path="/a.md", old_str="one", new_str="two")
    result = await agent(READ, edit, call("glob", pattern="*"), "done", checkpointer=store).run("on", thread_id="t")

    assert results(result)[:2] == ["     1\tone", "/a.md"]
    assert json.loads(results(result)[2])[0]["path"] == "/a.md"
    assert files(result) == {"/a.md": "two\n"}
    other = await agent(READ, "done", checkpointer=store).run("go", thread_id="other")
    assert results(other) == ["file_not_found"]


async def test_an_answer_of_a_person_finds_the_files_of_calls_that_had_finished() -> None:
    @tool
    def ask(ctx: ToolContext) -> str:
        """Ask."""
        return str(ctx.interrupt("Well?"))

    store = MemoryStore()
    asking = await agent([WRITE, call("ask")], checkpointer=store, tools=[ask]).run("go", thread_id="t")
    assert asking.interrupts
    result = await agent(READ, "done", checkpointer=store, tools=[ask]).resume("t", "yes")

    assert results(result) == ["/a.md", "yes", "     1\tone"]
    assert files(result) == {"/a.md": "one\n"}


async def test_calls_of_one_turn_see_the_files_as_they_were_and_change_a_path_once() -> None:
    batch = [
        call("write_file", path="/a.md", contents="1"),
        call("read_file", path="/a.md"),
        call("write_file", path="a.md", contents="2"),
        call("write_file", path="/a.md/b", contents="3"),
        call("write_file", path="/c", contents="4"),
    ]
    result = await agent(batch, READ, "done").run("go")

    conflict = "conflict: the turn already changes /a.md; change {} in the next one"
    said = ["/a.md", "file_not_found", conflict.format("/a.md"), conflict.format("/a.md/b"), "/c", "     1\t1"]
    assert results(result) == said
    assert files(result) == {"/a.md": "1", "/c": "4"}


async def test_a_fork_and_a_replay_have_the_files_of_their_time() -> None:
    store = MemoryStore()
    later = call("write_file", path="/a.md", contents="two")
    made = agent(WRITE, later, "done", checkpointer=store)
    await made.run("go", thread_id="t")
    first = next(each.n for each in await timetravel.history(made, "t") if each.node == "execute")

    before = await timetravel.state_at(made, "t", first)
    assert before.metadata["files/a.md"]["text"] == "one\n"
    forked = await timetravel.fork(made, "t", at=first)
    assert (await timetravel.replay(made, "t")).ok
    assert results(await agent(READ, "done", checkpointer=store).run("on", thread_id="t")) == ["     1\ttwo"]
    assert results(await agent(READ, "done", checkpointer=store).resume(forked))[-1] == "     1\tone"


async def test_a_child_sees_the_files_and_brings_back_what_it_changed() -> None:
    child = agent(READ, call("write_file", path="/b.md", contents="of the child"), "child done")

    @tool(effect="pure")
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        return (await ctx.run_child(child, "go")).text or ""

    store = MemoryStore()
    made = agent(
        WRITE, call("ask_child"), call("read_file", path="/b.md"), "done", tools=[ask_child], checkpointer=store
    )
    result = await made.run("go", thread_id="t")

    assert results(result) == ["/a.md", "child done", "     1\tof the child"]
    assert files(result) == {"/a.md": "one\n", "/b.md": "of the child"}
    assert (await timetravel.replay(made, "t")).ok


async def test_a_child_cannot_change_what_the_turn_of_its_parent_changes() -> None:
    child = agent(call("write_file", path="/a.md", contents="of the child"), "child done")
    seen: list[Any] = []

    @tool(effect="pure")
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        seen.append(await ctx.run_child(child, "go"))
        return "asked"

    result = await agent([WRITE, call("ask_child")], "done", tools=[ask_child]).run("go")

    assert results(seen[0])[0].startswith("conflict: the turn already changes /a.md")
    assert files(result) == {"/a.md": "one\n"}


async def test_a_run_that_a_tool_starts_by_itself_has_files_of_its_own() -> None:
    other = agent(READ, WRITE, "done")

    @tool
    async def start() -> str:
        """Start another run."""
        return results(await other.run("go", thread_id="elsewhere"))[0]

    result = await agent([call("start"), call("write_file", path="/x", contents="")], "done", tools=[start]).run("go")

    assert results(result) == ["file_not_found", "/x"]
    assert files(result) == {"/x": ""}


async def test_a_backend_of_the_user_is_used_as_it_is() -> None:
    mine = StateBackend({"/a.md": "mine"})
    assert isinstance(mine, BackendProtocol)
    result = await agent(READ, WRITE, "done", filesystem={"backend": mine}).run("go")

    assert results(result) == ["     1\tmine", "/a.md"]
    assert mine.read("/a.md") == "     1\tone"
    assert files(result) == {}


# -- large results ---------------------------------------------------------------------------------


LONG = "\n".join(f"line {n}" for n in range(20_000)) + "\n" + "z" * 5_000


@tool
def fetch() -> str:
    """Fetch much."""
    return LONG


async def test_a_large_result_is_kept_as_a_file_with_its_beginning_and_end_in_its_place() -> None:
    store = MemoryStore()
    made = agent(call("fetch"), "done", tools=[fetch], checkpointer=store)
    result = await made.run("go", thread_id="t")
    said = results(result)[0]
    path = next(iter(files(result)))

    assert path.startswith("/large_results/")
    assert f"this result has {len(LONG):,} characters; all of it is in {path}, in 20,003 lines; " in said
    assert f'read_file(path="{path}", offset=0, limit=100) reads it' in said
    assert "line 0\nline 1\n" in said
    assert said.endswith("z" * 2_000)
    assert len(said) < 7_000
    assert files(result)[path].replace("z\nz", "zz") == LONG
    more = agent(call("read_file", path=path, offset=19_999), "done", tools=[fetch], checkpointer=store)
    page = results(await more.run("on", thread_id="t"))[0].split("\n")
    assert [len(line) for line in page] == [17, 2_007, 2_007, 1_007]
    assert (await timetravel.replay(made, "t")).ok


async def test_a_large_result_that_cannot_be_kept_is_cut() -> None:
    result = await agent(call("fetch"), "done", tools=[fetch], filesystem={"max_bytes": 1_000}).run("go")
    assert files(result) == {}
    assert 90_000 < len(results(result)[0]) < 100_200

    off = await agent(call("fetch"), "done", tools=[fetch], filesystem={"offload_chars": None}).run("go")
    assert results(off) == results(result)
    hidden = {"permissions": ["deny read /large_results/**"]}
    assert results(await agent(call("fetch"), "done", tools=[fetch], filesystem=hidden).run("go")) == results(result)


async def test_a_large_result_goes_to_the_backend_of_the_user() -> None:
    mine = StateBackend()
    result = await agent(call("fetch"), "done", tools=[fetch], filesystem={"backend": mine}).run("go")
    (path,) = [path for path, _ in mine]
    assert path in results(result)[0]


@pytest.mark.parametrize("on_disk", [True, False])
async def test_a_result_that_is_larger_than_a_file_says_that_the_rest_is_not_kept(
    on_disk: bool, tmp_path: Path
) -> None:
    @tool
    def fetch_too_much() -> str:
        """Fetch too much."""
        return "y" * 12_000_000

    options: Any = {"filesystem": {"root": tmp_path}} if on_disk else {}
    result = await agent(call("fetch_too_much"), "done", tools=[fetch_too_much], **options).run("go")
    said = results(result)[0]

    assert said.startswith("[this result has 12,000,000 characters, which is too much for a file: what is left out is")
    assert (len(said), said[-1], files(result)) == (100_000, "y", {})


# -- signals ---------------------------------------------------------------------------------------


async def test_each_write_and_read_emits_an_event_with_its_bytes() -> None:
    write = call("write_file", path="a.md", contents="é")
    run = agent(write, READ, call("read_file", path="/none"), "done").run("go")
    told = [event async for event in run if event.type.startswith("deepagent")]

    assert [(event.type, event.path, event.byte_count) for event in told] == [  # type: ignore[attr-defined]
        ("deepagent_fs_write", "/a.md", 2),
        ("deepagent_fs_read", "/a.md", 2),
    ]


async def test_a_read_counts_the_bytes_of_the_text_that_it_gives() -> None:
    long = "é" * 2_010
    write = call("write_file", path="a.md", contents=f"éa\n\n{long}\n 4\tb\n")
    limits = [{"limit": 1}, {"limit": 3}, {"limit": 1, "offset": 3}, {"limit": 0}, {"offset": 9}]
    run = agent(write, *(call("read_file", path="/a.md", **each) for each in limits), "done").run("go")
    told = [event.byte_count async for event in run if event.type == "deepagent_fs_read"]  # type: ignore[attr-defined]

    assert told == [3, 3 + 1 + 1 + 4_000, 4, 3 + 1 + 1 + 4_000 + 1 + 4, 0]


# -- permissions -----------------------------------------------------------------------------------

RULES = ("allow /secrets/public/**", "deny /secrets/**", "ask write /etc/**", "deny write /docs/**")


async def test_the_first_rule_that_fits_decides() -> None:
    mine = StateBackend({"/secrets/key": "k", "/secrets/public/a": "p", "/docs/d": "d", "/etc/c": "c"})
    reads = [call("read_file", path=p) for p in ("/x/../secrets/key", "/secrets/public/a", "/docs/d", "/etc/c")]
    writes = [call("write_file", path=p, contents="") for p in ("secrets/new", "/docs/new", "/free")]
    shown = [call("ls", recursive=True), call("glob", pattern="**/*"), call("grep", pattern=".")]
    made = agent(*reads, *writes, *shown, "done", filesystem={"backend": mine, "permissions": RULES})
    result = await made.run("go")
    said = results(result)

    assert said[0] == "Rejected: permission_denied: a rule forbids to read /secrets/key"
    assert said[1:4] == ["     1\tp", "     1\td", "     1\tc"]
    assert said[4].startswith("Rejected: permission_denied: a rule forbids to write /secrets/new")
    assert said[5].startswith("Rejected: permission_denied: a rule forbids to write /docs/new")
    assert said[6] == "/free"
    assert not any("/secrets/key" in each for each in said[7:])
    assert all("/secrets/public/a" in each for each in said[7:])
    assert not any(path.startswith("/secrets/new") for path, _ in mine)


async def test_no_link_leads_around_the_rules(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("k")
    (tmp_path / "way").symlink_to("secrets")
    calls = [
        call("read_file", path="/way/key"),
        call("read_file", path="/secrets/key"),
        call("read_file", path="/none"),
    ]
    said = results(await agent(*calls, "done", filesystem={"root": tmp_path, "permissions": RULES}).run("go"))

    assert [each.partition(":")[0] for each in said] == ["permission_denied", "Rejected", "file_not_found"]
    free = results(await agent(*calls, "done", filesystem={"root": str(tmp_path)}).run("go"))
    assert free[1:] == ["     1\tk", "file_not_found"]


@pytest.mark.parametrize(("answer", "expected"), [("allow", "/etc/c"), ("refuse", "Rejected: a person refused")])
async def test_a_rule_may_ask_a_person(answer: str, expected: str) -> None:
    store = MemoryStore()
    write = call("write_file", path="/etc/c", contents="")
    options = {"checkpointer": store, "filesystem": {"permissions": RULES}}
    asked = await agent(write, **options).run("go", thread_id="t")
    assert [each.question for each in asked.interrupts] == [
        'May write_file write /etc/c? write_file(path="/etc/c", contents="")'
    ]
    result = await agent("done", **options).resume("t", answer)

    assert results(result)[0].startswith(expected)


async def test_a_child_is_under_the_rules_of_its_parent() -> None:
    child = agent(call("write_file", path="/docs/x", contents=""), "done")

    @tool(effect="pure")
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        return results(await ctx.run_child(child, "go"))[0]

    made = agent(call("ask_child"), "done", tools=[ask_child], filesystem={"permissions": RULES})
    assert results(await made.run("go"))[0].startswith("Rejected: permission_denied")


@pytest.mark.parametrize("rule", ["forbid /x", "deny x", "deny", "", "deny write", "deny /[z-a]"])
def test_a_rule_that_says_nothing_is_refused(rule: str) -> None:
    with pytest.raises(SettingsError, match="is not a rule"):
        agent("x", filesystem={"permissions": [rule]})


# -- how much there may be -------------------------------------------------------------------------


async def test_there_is_an_end_to_files_and_bytes() -> None:
    def write(path: str, size: int) -> Any:
        return call("write_file", path=path, contents="x" * size)

    turns = [[write("/a", 4), write("/b", 4), write("/c", 4)], write("/a", 6), write("/d", 0), write("/a", 7), "done"]
    result = await agent(*turns, filesystem={"max_bytes": 10, "max_files": 2}).run("go")

    full = "permission_denied: quota: at most 2 files"
    assert results(result) == ["/a", "/b", full, "/a", full, "permission_denied: quota: at most 10 bytes in all files"]
    assert {path: len(text) for path, text in files(result).items()} == {"/a": 6, "/b": 4}


async def test_a_child_is_within_the_bounds_of_its_parent() -> None:
    @tool
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        child = agent(*(call("write_file", path=f"/{name}", contents="xxxx") for name in "abc"), "done")
        return "\n".join(results(await ctx.run_child(child, "go")))

    for bounds, said in (({"max_files": 2}, "at most 2 files"), ({"max_bytes": 9}, "at most 9 bytes in all files")):
        first = call("write_file", path="/first", contents="")
        result = await agent(first, call("ask_child"), "done", tools=[ask_child], filesystem=bounds).run("go")
        assert results(result)[1].splitlines()[-1] == f"permission_denied: quota: {said}"
        assert sum(map(len, files(result).values())) <= 8


@pytest.mark.parametrize(
    ("bounds", "size", "written"), [({"max_bytes": 20}, 4, 4), ({"max_bytes": 23}, 4, 4), ({"max_files": 6}, 1, 4)]
)
async def test_children_side_by_side_are_within_the_bounds_together(
    bounds: dict[str, int], size: int, written: int
) -> None:
    @tool
    async def ask_child(name: str, ctx: ToolContext) -> str:
        """Ask the child."""
        script = [call("write_file", path=f"/{name}/{n}", contents="x" * size) for n in range(5)]
        return "\n".join(results(await ctx.run_child(agent(*script, "done"), "go")))

    turn = [call("write_file", path="/own", contents="xx"), call("ask_child", name="a"), call("ask_child", name="b")]
    result = await agent(turn, "done", tools=[ask_child], filesystem=bounds).run("go")

    kept = files(result)
    assert len(kept) == 1 + written
    assert len([path for path in kept if path.startswith("/a/")]) == len([p for p in kept if p.startswith("/b/")])
    assert sum(map(len, kept.values())) <= bounds.get("max_bytes", 1_000)
    assert len(kept) <= bounds.get("max_files", 1_000)
    assert all("permission_denied: quota" in said for said in results(result)[1:])


async def test_a_path_has_only_so_many_parts() -> None:
    result = await agent(call("write_file", path="/a/b/c", contents=""), "done", filesystem={"max_depth": 2}).run("go")
    assert results(result) == ["invalid_path"]


#: Bounds that would not hold, since the files are on a disk.
UNBOUNDED: list[dict[str, Any]] = [{"root": "x", "max_files": 3}, {"backend": StateBackend(), "max_bytes": 3}]


@pytest.mark.parametrize(
    "settings", [{"root": "x", "backend": StateBackend()}, {"backend": 3}, {"max_files": 0}, *UNBOUNDED]
)
def test_settings_that_contradict_themselves_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        agent("x", filesystem=settings)


async def test_the_model_gets_six_tools() -> None:
    model = ScriptedModel("done")
    result = await Agent(model, filesystem=True, catalogue=INSTALLED).run("go")
    assert result.state.messages[0].role is Role.USER
    assert [each.name for each in model.requests[0].tools] == [
        "write_file",
        "read_file",
        "ls",
        "edit_file",
        "glob",
        "grep",
    ]
