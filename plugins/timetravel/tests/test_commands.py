"""The commands that the plugin adds to ``locus threads``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from locus_plugin_timetravel.commands.group import threads

Locus = Callable[..., Any]
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

#: Seconds after which another process that has not come so far is broken.
PATIENCE = 60.0


def listed(locus: Locus) -> list[dict[str, Any]]:
    """The threads, the newest first."""
    return [json.loads(line) for line in locus("threads", "--json").out.splitlines()]


def test_a_command_that_an_untrusted_configuration_hides_is_there_once_that_is_named(
    untrusting: Locus, here: Path
) -> None:
    (here / "locus.toml").write_text('[plugins.filesystem]\npermissions = ["deny /secrets"]\n')
    hidden = untrusting("threads", "fork", "nowhere")
    assert "commands of plugins cannot be read before the configuration is trusted and correct" in hidden.err
    assert "there is no thread 'nowhere'" in untrusting("threads", "fork", "nowhere", "--config", "locus.toml").err


def test_the_calls_of_an_imported_run_are_shown_and_not_run_without_a_person(locus: Locus, tools: str) -> None:
    begun = locus("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "t")
    assert begun.status == 3
    locus("threads", "export", "t", "-o", "t.jsonl")
    locus("threads", "import", "t.jsonl", "--into", "theirs")

    for command in (["threads", "resume", "theirs"], ["resume", "theirs"], ["run", "--resume", "--thread", "theirs"]):
        refused = locus(*command)
        assert (refused.status, refused.out) == (2, "")
        assert 'ask(question="Delete it?")' in refused.err
        assert "--trust" in refused.err

    locus("threads", "import", "t.jsonl", "--into", "mine", "--trust")
    assert locus("run", "--resume", "--thread", "mine", "--answer", "no", "-q").out == "Done.\n"


# --- where they are -------------------------------------------------------------------------------


def test_they_are_among_the_commands_of_the_group_without_being_switched_on(locus: Locus) -> None:
    done = locus("threads", "--help")

    assert (done.status, done.err) == (0, "")
    assert {"copy", "diff", "export", "fork", "import", "replay"} == set(threads.commands)
    for name in (*threads.commands, "list", "show"):
        assert f"\n  {name} " in done.out


def test_help_imports_nothing_that_does_the_work(here: Path) -> None:
    program = (
        "import sys, json; from locus_plugin_cli.main import invoke; status = invoke(sys.argv[1:]); "
        "print(json.dumps([status, sorted(n for n in sys.modules if n.startswith('locus_plugin_timetravel'))]))"
    )

    found = {}
    for arguments in (("--help",), ("threads", "--help")):
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        found[arguments] = json.loads(done.stdout.splitlines()[-1])

    assert found[("--help",)] == [0, []]
    status, modules = found[("threads", "--help")]
    own = {name.removeprefix("locus_plugin_timetravel").lstrip(".") for name in modules}
    assert status == 0
    assert {name.partition(".")[0] for name in own} == {"", "commands", "manifest"}


@pytest.mark.parametrize("name", ["copy", "diff", "export", "fork", "import", "replay"])
def test_each_has_the_options_that_all_commands_have(locus: Locus, name: str) -> None:
    done = locus("threads", name, "--help")

    assert (done.status, done.err) == (0, "")
    assert all(f"{option} " in done.out for option in ("--checkpointer", "--config", "--no-plugins", "--help"))
    assert ("--model " in done.out) is (name == "replay")


def test_readme_names_every_command_and_option() -> None:
    missing = []
    for name, command in threads.commands.items():
        missing += [name] if f"`locus threads {name} " not in README else []
        for option in [each for each in command.params if isinstance(each, click.Option)]:
            missing += [f"{name} {o}" for o in option.opts if not re.search(rf"(?<![\w-]){re.escape(o)}\b", README)]
    assert missing == []


def test_an_unknown_thread_is_one_line_that_names_the_nearest(locus: Locus) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "invoices")

    for arguments in (
        ["fork", "invocies"],
        ["replay", "invocies"],
        ["diff", "invoices", "invocies"],
        ["export", "invocies"],
    ):
        done = locus("threads", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert len(done.lines) == 1
        assert "there is no thread 'invocies'" in done.err
        assert "did you mean 'invoices'?" in done.err


def test_an_empty_name_is_refused_before_anything_is_looked_at(locus: Locus, tmp_path: Path) -> None:
    for arguments in (["fork", "t", "--into", " "], ["export", "t", "-o", ""], ["replay", ""], ["import", ""]):
        done = locus("threads", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert "it is empty" in done.err
    assert not (tmp_path / "state").exists()


def test_the_store_is_named_before_or_behind_the_command(locus: Locus) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "t", "--checkpointer", "mine.db")

    before = locus("threads", "--checkpointer", "mine.db", "replay", "t")
    behind = locus("threads", "replay", "t", "--checkpointer", "mine.db")
    shown = locus("threads", "--json", "diff", "t", "t", "--checkpointer", "mine.db")

    assert before.out == behind.out == "thread t: 3 transitions came out as recorded\n"
    assert json.loads(shown.out)["same"] is True


# --- forks, replays, differences ------------------------------------------------------------------


def test_a_fork_goes_on_by_itself(locus: Locus, tools: str) -> None:
    locus("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "t")

    made = locus("threads", "fork", "t", "--at", "2", "--into", "other")
    assert (made.status, made.out) == (0, "other\n")
    assert made.err == "locus: go on with: locus threads resume other\n"
    assert {row["thread_id"]: row["status"] for row in listed(locus)} == {"other": "paused", "t": "ended"}
    done = locus("threads", "resume", "other", "-q")

    assert (done.status, done.out) == (0, "The product is 7006652.\n")
    assert locus("threads", "diff", "t", "other").status == 0
    assert json.loads(locus("threads", "fork", "t", "--json").out)["resumable"] is False
    assert "has no transition 9" in locus("threads", "fork", "t", "--at", "9").err


def test_a_replay_tells_the_first_difference(locus: Locus, tools: str, here: Path) -> None:
    locus("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "t")
    (here / "other_tools.py").write_text(
        "from locus import tool\n@tool\ndef multiply(a: int, b: str) -> int:\n    'Multiply.'\n    return 1\n"
    )

    same = locus("threads", "replay", "t")
    other = locus("threads", "replay", "t", "-t", "other_tools.py")
    told = json.loads(locus("threads", "replay", "t", "-t", "other_tools.py", "--json").out)

    assert (same.status, same.out) == (0, "thread t: 5 transitions came out as recorded\n")
    assert other.status == 1
    assert "  recorded: " in other.out
    assert "  now:      " in other.out
    assert (told["same"], told["difference"]["node"]) == (False, "think")


def test_two_threads_part_where_they_part(locus: Locus) -> None:
    for name, prompt in (("a", "one"), ("b", "one"), ("c", "two")):
        locus("run", prompt, "-m", "toy:echo", "-q", "--thread", name)

    same, other = locus("threads", "diff", "a", "b"), locus("threads", "diff", "a", "c")
    told = json.loads(locus("threads", "diff", "a", "c", "--json").out)

    assert (same.status, other.status) == (0, 1)
    assert "no difference" in same.out
    assert "> is where they part" in other.out
    assert told["rows"][0]["same"] is False


def test_a_thread_goes_through_a_pipe(locus: Locus, environment: dict[str, str], tools: str, here: Path) -> None:
    locus("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "t")
    command = [sys.executable, "-m", "locus_plugin_cli", "threads"]

    with subprocess.Popen([*command, "export", "t"], stdout=subprocess.PIPE, env=environment, cwd=here) as out:
        into = subprocess.run(
            [*command, "import", "-", "--into", "copy", "--trust"],
            stdin=out.stdout,
            capture_output=True,
            env=environment,
            cwd=here,
        )

    assert (into.returncode, into.stdout, into.stderr) == (0, b"copy\n", b"")
    assert locus("threads", "diff", "t", "copy").status == 0
    first, second = (locus("threads", "export", name).out.splitlines() for name in ("t", "copy"))
    assert [json.loads(line)["body"] for line in first[1:]] == [json.loads(line)["body"] for line in second[1:]]


def test_a_file_is_written_whole_and_read_whole(locus: Locus, here: Path) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "t")

    assert locus("threads", "export", "t", "-o", "t.jsonl").status == 0
    text = (here / "t.jsonl").read_text()
    (here / "cut.jsonl").write_text("".join(text.splitlines(keepends=True)[:-1]))
    cut = locus("threads", "import", "cut.jsonl", "--into", "cut")
    taken = locus("threads", "import", "t.jsonl")
    missing = locus("threads", "import", "nope.jsonl")
    nowhere = locus("threads", "export", "t", "-o", "nope/t.jsonl")

    assert text == locus("threads", "export", "t").out
    assert sorted(path.name for path in here.iterdir()) == ["cut.jsonl", "t.jsonl"]
    assert "it is cut off (in cut.jsonl)" in cut.err
    assert "that thread exists already" in taken.err
    assert (missing.status, nowhere.status) == (2, 2)
    assert all(len(done.lines) == 1 for done in (cut, taken, missing, nowhere))
    assert [row["thread_id"] for row in listed(locus)] == ["t"]


def test_what_a_model_said_cannot_drive_the_terminal_later(locus: Locus) -> None:
    locus("run", "\x1b[31mx", "-m", "toy:evil", "-q", "--thread", "t")

    done = locus("threads", "diff", "t", "t")

    assert (done.status, done.err) == (0, "")
    assert "red" in done.out
    assert "\x1b" not in done.out


# --- what the thread remembers --------------------------------------------------------------------


def test_a_fork_has_the_totals_of_what_it_shares(locus: Locus, tools: str) -> None:
    for _ in range(3):
        locus("run", "x", "-m", "toy:product", "-t", tools, "-q", "--thread", "sums")
    locus("threads", "fork", "sums", "--at", "7", "--into", "fork")

    fork = json.loads(locus("threads", "show", "fork", "--json").out)

    assert (fork["iterations"], fork["usage"]["total_tokens"]) == (3, 2460 + 1230)
    assert fork["forked_from"] == "sums"


def test_a_replay_needs_nothing_of_what_the_run_was_begun_with(
    locus: Locus, tools: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locus("run", "x", "-m", "toy:asks", "-t", os.path.relpath(tools), "-q", "--thread", "t", "-s", "@@home")
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    assert locus("threads", "resume", "t", "--answer", "yes").status == 0
    assert locus("threads", "replay", "t").status == 0


def test_an_export_has_no_secret(locus: Locus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "s3cret-value")
    (here / "locus.toml").write_text('[plugins]\nenabled = ["toy"]\n[plugins.toy]\nkey = { env = "A_KEY" }\n')
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "t", "--checkpointer", "sqlite:s3cret-value.db")

    done = locus("threads", "export", "t", "--checkpointer", "sqlite:s3cret-value.db")

    assert '"locus.cli"' in done.out
    assert "s3cret" not in done.out


def test_a_run_that_was_killed_and_resumed_replays_and_a_killed_one_is_moved(
    locus: Locus, environment: dict[str, str], tools: str, here: Path
) -> None:
    command = [sys.executable, "-m", "locus_plugin_cli", "run", "Pay it.", "-m", "toy:pays", "-t", tools, "-q"]
    with subprocess.Popen([*command, "--thread", "t"], cwd=here, env=environment) as running:
        until = time.monotonic() + PATIENCE
        while not (here / "charges").exists() or not (here / "charges").read_text():
            assert time.monotonic() < until, "the tool was not called in time"
            time.sleep(0.02)
        running.kill()

    assert locus("threads", "export", "t", "-o", "t.jsonl").status == 0
    moved = locus("threads", "import", "t.jsonl", "--checkpointer", "x.db")
    assert (moved.status, moved.out, moved.err) == (0, "t\n", "")
    rows = locus("threads", "--json", "--checkpointer", "x.db").out.splitlines()
    assert [json.loads(row)["status"] for row in rows] == ["paused"]
    (here / "gate").touch()

    assert locus("threads", "resume", "t").status == 0
    assert locus("threads", "replay", "t").status == 0
