"""``locus threads``: what is kept, and what can be done with it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent
from locus.journal import JournalHost
from locus_plugin_cli.distributions import install_target
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel

Locus = Callable[..., Any]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder where the commands under test keep things."""
    return tmp_path / "state"


def listed(keeper: Locus, *more: str) -> list[dict[str, Any]]:
    """What the list says, for programs."""
    done = keeper("threads", "--json", *more)
    assert (done.status, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


# --- which store --------------------------------------------------------------------------------


def test_where_nothing_keeps_threads_the_command_says_how_to_get_something_that_does(locus: Locus) -> None:
    done = locus("threads")

    assert done.status == 2
    assert done.out == ""
    assert "no installed plugin stores them in a file; pip install " in done.err
    assert len(done.lines) == 1


def test_looking_at_nothing_leaves_no_trace(keeper: Locus, state: Path) -> None:
    done = keeper("threads")

    assert (done.status, done.out) == (0, "")
    assert done.err == f"locus: no threads in {state / 'threads.db'}\n"
    assert not state.exists()


def test_a_run_is_kept_in_a_file_that_only_its_owner_reads(keeper: Locus, state: Path) -> None:
    done = keeper("run", "x", "-m", "toy:echo", "-q")

    assert (done.status, done.err) == (0, "")
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "threads.db").stat().st_mode & 0o777 == 0o600
    assert [row["status"] for row in listed(keeper)] == ["ended"]


def test_a_chat_is_kept_and_goes_on(keeper: Locus, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["one"])
    monkeypatch.setattr("locus_plugin_cli.commands.chat.read_message", lambda *_: next(lines, "/quit"))
    assert keeper("chat", "-m", "toy:echo").status == 0
    (row,) = listed(keeper)

    done = keeper("run", "two", "-m", "toy:echo", "-q", "--thread", row["thread_id"])

    assert json.loads(done.out)["said"] == ["one", "two"]


def test_no_keep_keeps_nothing(keeper: Locus, state: Path) -> None:
    done = keeper("run", "x", "-m", "toy:echo", "-q", "--no-keep")

    assert (done.status, done.err) == (0, "")
    assert not state.exists()


def test_the_configuration_names_another_store(keeper: Locus, here: Path, state: Path) -> None:
    (here / "locus.toml").write_text('[agent]\nmodel = "toy:echo"\ncheckpointer = "mine.db"\n')

    keeper("run", "x", "-q")

    assert (here / "mine.db").is_file()
    assert not list(state.rglob("*.db"))
    assert len(listed(keeper)) == 1


def test_the_store_is_named_before_the_command_or_behind_it(keeper: Locus) -> None:
    keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "t", "--checkpointer", "mine.db")

    assert listed(keeper) == []
    assert [row["thread_id"] for row in listed(keeper, "--checkpointer", "mine.db")] == ["t"]
    before = keeper("threads", "--checkpointer", "mine.db", "show", "t")
    assert before.out == keeper("threads", "show", "t", "--checkpointer", "mine.db").out
    assert before.out.startswith("thread t: ended: NoToolCalls\n1 run, 3 transitions, 1,230 tokens")


@pytest.mark.parametrize("broken", ["folder", "damaged", "foreign"])
def test_a_file_that_cannot_be_used_is_a_warning_and_the_run_goes_on(keeper: Locus, state: Path, broken: str) -> None:
    if broken == "folder":
        state.write_text("no folder")
    else:
        state.mkdir()
        (state / "threads.db").write_bytes(b"garbage " * 100 if broken == "damaged" else b"SQLite format 3\0" * 100)

    for shown in (["-q"], []):
        done = keeper("run", "x", "-m", "toy:echo", *shown)

        assert done.status == 0
        assert '"said": ["x"]' in done.out
        assert len(done.lines) == 1
        assert done.err.startswith("locus: warning: this conversation is not kept: ")


def test_a_file_that_cannot_be_used_is_an_error_where_it_was_asked_for(keeper: Locus, state: Path, here: Path) -> None:
    state.mkdir()
    for path in (state / "threads.db", here / "mine.db"):
        path.write_bytes(b"garbage " * 100)

    for arguments in (
        ["threads"],
        ["run", "x", "-m", "toy:echo", "--thread", "t"],
        ["run", "x", "-m", "toy:echo", "--checkpointer", "mine.db"],
    ):
        done = keeper(*arguments)
        assert done.status == 1, arguments
        assert len(done.lines) == 1
        assert "is not an SQLite database" in done.err


# --- the list -----------------------------------------------------------------------------------


def test_the_list_is_a_line_a_thread_the_newest_first(keeper: Locus, tools: str) -> None:
    keeper("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "sums")
    keeper("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "asks")

    done = keeper("threads")
    rows = [line.split("\t") for line in done.out.splitlines()]
    asks, sums = listed(keeper)

    assert [row[0] for row in rows] == ["asks", "sums"]
    assert [row[2:] for row in rows] == [
        ["waits for an answer", "x"],
        ["ended", "x"],
    ]
    assert (asks["status"], asks["resumable"], asks["node"], asks["title"]) == ("waiting", True, "execute", "x")
    assert (sums["status"], sums["resumable"], sums["node"], sums["agent_id"]) == ("ended", False, "end", "locus-cli")
    shown = json.loads(keeper("threads", "show", "asks", "--json").out)
    assert (shown["detail"], shown["questions"][0]["options"]) == ("Delete it?", ["yes", "no"])
    assert keeper("threads", "show", "asks").out.startswith("thread asks: waits for an answer: Delete it?\n")
    assert keeper("threads", "list").out.split("\t")[0] == "asks"


def test_the_list_reads_no_thread(keeper: Locus, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "t")
    for name in ("read", "peek", "read_page", "read_forms"):
        monkeypatch.setattr(f"locus_plugin_sqlite.SqliteStore.{name}", None)

    assert keeper("threads").out.startswith("t\t")
    assert [row["entries"] for row in listed(keeper)] == [3 * 4]
    assert keeper("run", "x", "-m", "toy:echo").status == 0


def test_a_thread_that_is_shown_has_the_totals_of_all_its_runs(keeper: Locus, tools: str) -> None:
    for _ in range(3):
        keeper("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "sums")

    sums = json.loads(keeper("threads", "show", "sums", "--json").out)

    totals = (sums["iterations"], sums["usage"]["total_tokens"], sums["usage"]["cached_tokens"])
    assert totals == (6, 3 * 2460, 3 * 2000)


def test_totals_are_those_of_the_whole_journal_where_only_its_end_is_read(keeper: Locus, tools: str) -> None:
    """A thread of many entries has a cached state, and what a claim shows begins there."""
    for _ in range(16):
        keeper("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "sums")

    sums = json.loads(keeper("threads", "show", "sums", "--json").out)

    assert (sums["iterations"], sums["usage"]["total_tokens"]) == (32, 16 * 2460)


def test_the_list_is_as_long_as_is_wanted(keeper: Locus) -> None:
    for name in "abc":
        keeper("run", "x", "-m", "toy:echo", "-q", "--thread", name)

    done = keeper("threads", "--limit", "2")

    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["c", "b"]
    assert done.err == "locus: 1 more; --limit 0 lists all\n"
    assert len(listed(keeper)) == 3
    assert len(listed(keeper, "--limit", "1")) == 1


# --- one thread ---------------------------------------------------------------------------------


def test_show_tells_transitions_calls_and_results(keeper: Locus, tools: str) -> None:
    keeper("run", "What is it?", "-m", "toy:product", "-t", tools, "-q", "--thread", "t")

    shown = keeper("threads", "show", "t").out
    told = json.loads(keeper("threads", "show", "t", "--json").out)

    assert "   2  think -> execute (the model asks for tools), 1,230 tokens (1,000 cached), " in shown
    assert "      -> multiply(a=1234, b=5678)\n" in shown
    assert "): 7006652\n" in shown
    assert [row["n"] for row in told["transitions"]] == [1, 2, 3, 4, 5]
    assert told["transitions"][2]["calls"][0]["arguments"] == {"a": 1234, "b": 5678}
    assert told["usage"]["total_tokens"] == 2460
    assert "messages" not in told


def test_show_has_the_conversation_when_it_is_wanted(keeper: Locus, tools: str) -> None:
    keeper("run", "What is it?", "-m", "toy:product", "-t", tools, "-q", "--thread", "t", "-s", "Be brief.")

    shown = keeper("threads", "show", "t", "--messages").out
    told = json.loads(keeper("threads", "show", "t", "--messages", "--json").out)

    assert "\nsystem:\nBe brief.\n\nuser:\nWhat is it?\n\nassistant:\n" in shown
    assert [message["role"] for message in told["messages"]] == ["system", "user", "assistant", "tool", "assistant"]


def test_what_a_model_said_cannot_drive_the_terminal_later(keeper: Locus, process: Locus) -> None:
    keeper("run", "\x1b[31mx", "-m", "toy:evil", "-q", "--thread", "t")

    for arguments in (["show", "t", "--messages"], ["list"]):
        done = process("threads", *arguments)
        assert (done.status, done.err) == (0, "")
        assert "\x1b" not in done.out + done.err
        assert "\x07" not in done.out + done.err


def test_an_unknown_thread_is_one_line_that_names_the_nearest(keeper: Locus) -> None:
    keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "invoices")

    for arguments in (
        ["show", "invocies"],
        ["resume", "invocies"],
        ["delete", "invocies", "--yes"],
    ):
        done = keeper("threads", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert len(done.lines) == 1
        assert "there is no thread 'invocies'" in done.err
        assert "did you mean 'invoices'?" in done.err


def test_a_question_is_answered_without_saying_again_what_the_run_was_begun_with(
    keeper: Locus, tools: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper("run", "x", "-m", "toy:asks", "-t", os.path.relpath(tools), "-q", "--thread", "t", "-s", "@@home")
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    done = keeper("threads", "resume", "t", "--answer", "yes")

    assert done.status == 0
    assert "the person said yes" in done.out
    assert "Done." in done.out


def test_resume_without_a_thread_takes_the_newest_that_can_be_resumed(keeper: Locus, tools: str) -> None:
    keeper("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "asks")
    keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "over")

    done = keeper("run", "--resume", "--answer", "no", "-q")
    again = keeper("run", "--resume", "-q")

    assert (done.status, done.out, done.err) == (0, "Done.\n", "locus: going on with thread asks\n")
    assert again.status == 2
    assert "can be resumed" in again.err


def test_a_question_without_an_answer_is_asked_again(keeper: Locus, tools: str) -> None:
    keeper("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "t")

    done = keeper("threads", "resume", "t", "-q")

    assert done.status == 3
    assert done.lines[-1] == "locus: answer with: locus run --thread t --resume --answer ANSWER"


def test_no_secret_is_remembered(keeper: Locus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "s3cret-value")
    (here / "locus.toml").write_text('[plugins]\nenabled = ["toy"]\n[plugins.toy]\nkey = { env = "A_KEY" }\n')
    keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "t", "--checkpointer", "sqlite:s3cret-value.db")

    async def remembered() -> str:
        async with SqliteStore(here / "s3cret-value.db") as store:
            host = await JournalHost.peek(store, "t")
        assert host is not None
        return repr(host.state)

    state = anyio.run(remembered)

    assert "'locus.cli'" in state
    assert "s3cret" not in state


def test_what_others_wrote_into_a_thread_loads_no_code(keeper: Locus, here: Path) -> None:
    (here / "evil.py").write_text("open('loaded', 'w').close()\ndef f() -> int:\n    'x'\n    return 1\n")
    forged = {"tools": [str(here / "evil.py")], "model": "toy:fails", "seal": "0" * 64, "temperature": 0.5}

    async def write() -> None:
        async with SqliteStore(here / "t.db") as store:
            agent = Agent(ScriptedModel("hello"), name="locus-cli", checkpointer=store)
            await agent.run("x", thread_id="t", metadata={"locus.cli": forged})

    anyio.run(write)
    done = keeper("run", "y", "-m", "toy:echo", "-q", "--thread", "t", "--checkpointer", "sqlite:t.db")

    assert done.status == 0
    assert json.loads(done.out)["temperature"] == 0.5
    assert "this thread names its model, tools, which are not used" in done.err
    assert not (here / "loaded").exists()


# --- away ----------------------------------------------------------------------------


def test_deleting_needs_a_word_and_is_all_or_nothing_about_names(keeper: Locus) -> None:
    for name in "abc":
        keeper("run", "x", "-m", "toy:echo", "-q", "--thread", name)

    unsaid = keeper("threads", "delete", "a")
    unknown = keeper("threads", "delete", "a", "nope", "--yes")
    assert (unsaid.status, unknown.status) == (2, 2)
    assert "say --yes" in unsaid.err
    assert len(listed(keeper)) == 3

    done = keeper("threads", "delete", "a", "b", "a", "--yes")
    assert (done.status, done.out) == (0, "deleted a\ndeleted b\n")
    assert [row["thread_id"] for row in listed(keeper)] == ["c"]


def test_deleting_asks_a_person(keeper: Locus, terminal: Callable[..., Any]) -> None:
    keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "t")

    asking = terminal("threads", "delete", "t")
    asking.expect("Forget t? [y/N]")
    asking.send("\n")
    asking.expect("nothing was deleted")
    assert asking.finish() == 1
    asking = terminal("threads", "delete", "t")
    asking.expect("Forget t? [y/N]")
    asking.send("y\n")
    asking.expect("deleted t")
    assert asking.finish() == 0
    assert listed(keeper) == []


def test_vacuum_says_what_was_freed(keeper: Locus, state: Path) -> None:
    keeper("run", "x", "-m", "toy:long", "-q", "--thread", "t")
    keeper("threads", "delete", "t", "--yes")

    freed = json.loads(keeper("threads", "vacuum", "--json").out)["freed_bytes"]
    again = keeper("threads", "vacuum")

    assert freed >= 0
    assert (again.status, again.out) == (0, "0 bytes freed\n")


def test_a_store_without_a_vacuum_says_so(locus: Locus) -> None:
    done = locus("threads", "vacuum", "--checkpointer", "toy:x")

    assert done.status == 1
    assert done.err == "locus: toy:x needs no vacuum: MemoryStore has none\n"


def test_an_empty_name_is_refused_before_anything_is_looked_at(keeper: Locus, state: Path) -> None:
    for arguments in (["show", ""], ["resume", " "], ["delete", "t", ""]):
        done = keeper("threads", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert "it is empty" in done.err
    assert not state.exists()


# --- commands of plugins --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["copy", "diff", "export", "fork", "import", "replay"])
def test_a_command_that_is_not_installed_is_not_there_and_says_what_to_install(keeper: Locus, name: str) -> None:
    done = keeper("threads", name, "t")

    said = f"No such command '{name}'; pip install {install_target('timetravel')} adds it"
    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert said in done.err
    assert f"\n  {name} " not in keeper("threads", "--help").out
    assert "\n  show " in keeper("threads", "--help").out


_ADDING = """
import click
from locus.plugin import Plugin, hookimpl
from locus_plugin_cli.distributions import install_target

plugin = Plugin(name={name!r}, api=(1, 0), summary="Adds.", provides={{"commands": {name!r}}})
threads = click.Group("threads")


@threads.command({command!r}, short_help="Count the letters of an id.")
@click.argument("text")
def count(text):
    click.echo(len(text))


@hookimpl
def locus_register_commands():
    return ["{name}:threads"]
"""

Install = Callable[..., Path]


@pytest.fixture
def adding(site: Path, install: Install, monkeypatch: pytest.MonkeyPatch, keeper: Locus) -> Callable[[str, str], None]:
    """Installs a plugin of that name, which adds a command of that name to `locus threads`."""

    def add(name: str, command: str) -> None:
        install(site, name, f"{name}.py", points=f"{name} = {name}:plugin")
        (site / f"{name}.py").write_text(_ADDING.format(name=name, command=command))
        monkeypatch.delitem(sys.modules, name, raising=False)

    return add


def test_an_installed_plugin_adds_a_command_without_being_switched_on(
    keeper: Locus, adding: Callable[[str, str], None]
) -> None:
    adding("counts", "count")

    shown, done = keeper("threads", "--help"), keeper("threads", "count", "abcd")
    misspelled = keeper("threads", "cuont", "abcd")

    assert re.search(r"\n  count +Count the letters of an id\.\n", shown.out)
    assert shown.out.index("  backup ") < shown.out.index("  count ") < shown.out.index("  delete ")
    assert (done.status, done.out, done.err) == (0, "4\n", "")
    assert "Did you mean 'count'?" in misspelled.err


def test_a_name_that_is_taken_is_left_out_and_names_both_owners(
    keeper: Locus, adding: Callable[[str, str], None]
) -> None:
    adding("counts", "count")
    adding("more", "count")
    adding("thief", "show")

    done = keeper("threads", "--help")

    assert done.status == 0
    assert len(done.lines) == 2
    assert "'more': its command 'threads count' is taken by 'counts'; name it otherwise" in done.lines[0]
    assert "'thief': its command 'threads show' is taken by 'cli'; name it otherwise" in done.lines[1]


def test_a_plugin_that_cannot_be_asked_leaves_the_others_commands(
    keeper: Locus, adding: Callable[[str, str], None], site: Path
) -> None:
    adding("counts", "count")
    adding("lacks", "lack")
    (site / "lacks.py").write_text((site / "lacks.py").read_text().replace("lacks:threads", "lacks:thread"))

    done = keeper("threads", "--help")

    assert (done.status, len(done.lines)) == (0, 1)
    assert "lacks:thread cannot be imported" in done.err
    assert "\n  count " in done.out


# --- the next turn --------------------------------------------------------------------------------


def test_continue_takes_the_newest_conversation_of_this_folder(
    keeper: Locus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper("run", "one", "-m", "toy:echo", "-q", "--thread", "mine")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    keeper("run", "other", "-m", "toy:echo", "-q")
    monkeypatch.chdir(here)

    done = keeper("run", "two", "-q", "-c")

    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["said"] == ["one", "two"]


def test_continue_without_a_conversation_is_one_line(keeper: Locus, here: Path) -> None:
    done = keeper("run", "two", "-m", "toy:echo", "--continue")

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert f"no conversation of {here} is kept in " in done.err


@pytest.mark.parametrize("command", ["run", "chat"])
@pytest.mark.parametrize("other", [["--thread", "t"], ["--no-keep"]])
def test_continue_excludes_what_says_otherwise(keeper: Locus, command: str, other: list[str]) -> None:
    done = keeper(command, *(["x"] if command == "run" else []), "-c", *other)

    assert done.status == 2
    assert f"--continue excludes {other[0]}" in done.err


def test_next_turn_has_the_model_the_tools_and_the_prompt_of_the_thread(keeper: Locus, tools: str) -> None:
    begun = ["-m", "toy:product", "-t", tools, "-s", "Be brief.", "--temperature", "0.5"]
    keeper("run", "one", "-q", "--thread", "t", *begun)

    done = keeper("run", "two", "--thread", "t")
    typed = keeper("run", "three", "-q", "--thread", "t", "-m", "toy:echo")

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("toy:product\n")
    assert "multiply(a=1234, b=5678)" in done.out
    assert json.loads(typed.out) == {"said": ["one", "two", "three"], "system": ["Be brief."], "temperature": 0.5}


def test_next_turn_without_a_file_of_tools_that_is_gone_is_a_warning(keeper: Locus, here: Path) -> None:
    (here / "mine.py").write_text('def f() -> int:\n    """Give one."""\n    return 1\n')
    keeper("run", "one", "-m", "toy:echo", "-q", "-t", "mine.py", "--thread", "t")
    (here / "mine.py").unlink()

    done = keeper("run", "two", "-q", "--thread", "t")

    assert (done.status, len(done.lines)) == (0, 1)
    assert f"the conversation had the tools of {here / 'mine.py'}, and that file was not found" in done.err


def test_chat_that_goes_on_shows_the_last_turns(keeper: Locus, terminal: Callable[..., Any]) -> None:
    for text in ("one", "two", "three"):
        keeper("run", text, "-m", "toy:thinks", "-q", "--thread", "t")
    running = terminal("chat", "-c")

    running.expect("toy:thinks; /help")
    running.expect("(2 earlier messages")
    running.expect("> two")
    running.expect("Because.")
    running.expect("> three")
    running.expect("Because.")
    running.send("/quit\n")
    assert running.finish() == 0
    assert "> one" not in running.output


def test_missing_key_is_found_before_the_run_and_leaves_no_thread(keeper: Locus, state: Path) -> None:
    for command in (["run", "x"], ["run", "x", "--json"], ["chat"]):
        done = keeper(*command, "-m", "toy:keyless")

        assert (done.status, done.out) == (2, "")
        assert done.err == "locus: toy needs a key; set TOY_KEY\n"
    assert listed(keeper) == []


# --- search ---------------------------------------------------------------------------------------


def test_search_finds_threads_by_their_title_and_by_what_was_said(keeper: Locus, tools: str) -> None:
    keeper("run", "How high is the tower?", "-m", "toy:thinks", "-q", "--thread", "tower")
    keeper("run", "What is it?", "-m", "toy:product", "-t", tools, "-q", "--thread", "product")

    assert [row["thread_id"] for row in listed(keeper, "--search", "HIGH tower")] == ["tower"]
    assert [row["thread_id"] for row in listed(keeper, "--search", "is")] == ["product", "tower"]
    assert [row["thread_id"] for row in listed(keeper, "--search", "what 7006652")] == ["product"]
    done = keeper("threads", "--search", "castle")
    assert (done.status, done.out) == (0, "")
    assert done.err.endswith("threads.db has 'castle'\n")
