"""On a terminal: the live view, Ctrl-C, questions, and a conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_testkit.localserver import Answer, LocalServer

Open = Callable[..., Any]

# Ctrl-C and Ctrl-D as they are typed.
CTRL_C, CTRL_D = "\x03", "\x04"


def test_terminal_shows_colours_and_what_is_going_on(terminal: Open, here: Path) -> None:
    running = terminal("run", "x", "-m", "toy:pauses")

    running.expect("\x1b[2miteration 1")
    running.expect("thinking")
    (here / "gate").touch()
    running.expect("\x1b[2KThat took a while.")
    assert running.finish() == 0


def test_dumb_terminal_gets_plain_lines(terminal: Open) -> None:
    running = terminal("run", "x", "-m", "toy:echo", TERM="dumb")

    assert running.finish() == 0
    assert '{"said": ["x"]' in running.output
    assert "\x1b" not in running.output


def test_progress_of_a_library_is_the_status(terminal: Open, here: Path) -> None:
    running = terminal("run", "x", "-m", "toy:prepares")

    running.expect("preparing the model (once): 37 %  ")
    (here / "gate").touch()
    running.expect("\x1b[2mpreparing the model (once): 100 %")
    running.expect("Ready.")
    assert running.finish() == 0


def test_ctrl_c_ends_the_run_at_its_next_safe_point(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:naps", "-t", tools, "--max-iterations", "100000")

    running.expect("iteration 3")
    running.send(CTRL_C)
    running.expect("ending at the next safe point")
    running.expect("stopped: Cancelled: Ctrl-C")
    running.expect("locus: stopped by Ctrl-C after ")
    assert running.finish() == 130
    assert "(nap x" in running.output
    assert "Traceback" not in running.output


#: The beginning of an answer over HTTP that never ends.
PIECES_OF_AN_ANSWER = [{"choices": [{"delta": {"content": f"word{n} "}}]} for n in range(3)]


@pytest.mark.parametrize("command", ["run", "chat"])
def test_ctrl_c_once_ends_an_answer_that_streams_and_keeps_what_had_come(terminal: Open, command: str) -> None:
    begun = Answer.events(*PIECES_OF_AN_ANSWER, done="", ending="silent")
    whole = Answer.events({"choices": [{"delta": {"content": "The end."}, "finish_reason": "stop"}]})
    with LocalServer() as server:
        server.then(begun, whole)
        kept = ("--thread", "t", "--checkpointer", "sqlite:t.db", "-m", "openai:m")
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        if command == "run":
            running = terminal("run", "Tell me a story", *kept, **settings)
        else:
            running = terminal("chat", *kept, **settings)
            running.expect("> ")
            running.send("Tell me a story\n")
        running.expect("word2")
        running.send(CTRL_C)
        running.expect("stopped by Ctrl-C after 1 iteration")
        if command == "run":
            running.expect("go on with: locus run --thread t")
            assert running.finish() == 130
            running = terminal("run", "Go on", *kept, **settings)
        else:
            running.expect("> ")
            running.send("Go on\n")
        running.expect("The end.")
        said = [(m["role"], m["content"]) for m in server.received[1].json["messages"]]
        assert said == [("user", "Tell me a story"), ("assistant", "word0 word1 word2 "), ("user", "Go on")]


def test_ctrl_c_lets_a_tool_under_way_finish_and_says_what_was_done(terminal: Open, tools: str, here: Path) -> None:
    running = terminal("run", "x", "-m", "toy:gated", "-t", tools)

    running.expect("gate is running")
    running.send(CTRL_C)
    running.expect("ending at the next safe point")
    (here / "gate").touch()
    running.expect("): the gate is open")
    running.expect("stopped: Cancelled: Ctrl-C")
    running.expect("stopped by Ctrl-C after 1 iteration, 1 tool call ran (gate)")
    assert running.finish() == 130
    assert "I went through." not in running.output


def test_ctrl_c_while_the_command_is_still_loaded_is_one_line(here: Path, environment: dict[str, str]) -> None:
    # Somebody presses it while the module that does the work is imported.
    (here / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Presser:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'locus_plugin_cli.main':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Presser())\n"
    )
    path = os.pathsep.join([str(here), environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "locus_plugin_cli", "models"],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "locus: stopped by Ctrl-C\n")


def test_second_ctrl_c_ends_it_at_once(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:naps_long", "-t", tools)

    running.expect("nap is running")
    running.send(CTRL_C)
    running.expect("Ctrl-C again ends at once")
    running.send(CTRL_C)
    running.expect("no tool ran, broken off: nap")
    # The body sleeps for a minute in a thread that nobody can stop: the process does not wait for it.
    assert running.finish() == 130
    assert "Traceback" not in running.output


def test_ctrl_c_says_how_a_kept_conversation_goes_on(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:naps_long", "-t", tools, "--thread", "t", "--checkpointer", "toy:x")

    running.expect("nap is running")
    running.send(CTRL_C)
    running.expect("safe point")
    running.send(CTRL_C)
    running.expect("go on with: locus run --thread t --checkpointer toy:x --resume")
    assert running.finish() == 130


def test_person_is_asked_and_the_run_goes_on(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:asks", "-t", tools)

    running.expect("? Delete it? (ask)")
    running.expect("2. no")
    running.send("maybe\n")
    running.expect("is not one of the answers")
    running.send("2\n")
    running.expect("the person said no")
    running.expect("Done.")
    assert running.finish() == 0


def test_person_who_does_not_answer_leaves_the_run_waiting(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:asks", "-t", tools)

    running.expect("2. no")
    running.expect("> ")
    running.send(CTRL_D)
    assert running.finish() == 3
    assert "Traceback" not in running.output


def test_ctrl_c_instead_of_an_answer_stops_and_says_how_to_answer(terminal: Open, tools: str) -> None:
    running = terminal("run", "x", "-m", "toy:asks", "-t", tools, "--thread", "t", "--checkpointer", "toy:y")

    running.expect("2. no")
    running.expect("> ")
    running.insist(CTRL_C, "stopped by Ctrl-C after ")
    running.expect("--resume --answer ANSWER")
    assert running.finish() == 130


def test_ctrl_c_before_the_run_is_one_line(terminal: Open, here: Path) -> None:
    (here / "slow_tools.py").write_text("import time\nprint('loading')\ntime.sleep(60)\n")
    running = terminal("run", "x", "-m", "toy:echo", "-t", "slow_tools.py")

    running.expect("loading")
    running.send(CTRL_C)
    running.expect("locus: stopped by Ctrl-C")
    assert running.finish() == 130
    assert "Traceback" not in running.output


def test_terminal_is_no_part_of_the_prompt_unless_it_is_asked_for(terminal: Open) -> None:
    running = terminal("run", "x", "-m", "toy:echo")
    running.expect('{"said": ["x"]')
    assert running.finish() == 0

    asked = terminal("run", "Summarise:", "-", "-m", "toy:echo")
    asked.insist("typed\n" + CTRL_D, json.dumps({"said": ["Summarise:\n\ntyped\n"]})[:-2])
    assert asked.finish() == 0


def test_chat_keeps_the_conversation(terminal: Open) -> None:
    running = terminal("chat", "-m", "toy:echo")

    running.expect("> ")
    running.send("one\n")
    running.expect("stopped:")
    running.expect("> ")
    running.send("two\n")
    running.expect(json.dumps({"said": ["one", "two"]})[:-1])
    running.expect("> ")
    running.send(CTRL_D)
    assert running.finish() == 0


def test_lines_are_found_in_the_next_chat_and_secrets_are_not(terminal: Open, here: Path) -> None:
    first = terminal("chat", "-m", "toy:echo", TERM="xterm")
    for line in ("find me", " not me", "my key is sk-abcdefgh12345678"):
        first.expect("> ")
        first.send(f"{line}\n")
        first.expect("stopped:")
    first.expect("> ")
    first.send("exit\n")
    assert first.finish() == 0
    (file,) = here.parent.rglob("chat_lines")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().splitlines() == ['"find me"', '"exit"']

    second = terminal("chat", "-m", "toy:echo", TERM="xterm")
    second.expect("> ")
    second.send("\x1b[A\x1b[A\n")
    second.expect(json.dumps({"said": ["find me"]})[:-1])
    second.expect("> ")
    second.send("quit\n")
    assert second.finish() == 0


def test_nothing_that_is_typed_is_written_without_keeping(terminal: Open, here: Path) -> None:
    running = terminal("chat", "-m", "toy:echo", "--no-keep")

    running.expect("> ")
    running.send("one\n")
    running.expect("stopped:")
    running.expect("> ")
    running.send(CTRL_D)
    assert running.finish() == 0
    assert list(here.parent.rglob("chat_lines")) == []


def test_tab_completes_commands_and_is_a_tab_in_a_message(terminal: Open) -> None:
    running = terminal("chat", "-m", "toy:echo")

    running.expect("> ")
    running.send("/tok\t\n")
    running.expect("0 turns, 0 tokens")
    running.expect("> ")
    running.send("a\tb\n")
    running.expect(json.dumps({"said": ["a\tb"]})[:-1])
    running.expect("> ")
    running.send("/ex\t\n")
    assert running.finish() == 0


def test_what_is_pasted_is_one_message(terminal: Open) -> None:
    running = terminal("chat", "-m", "toy:echo")

    running.expect("> ")
    running.send("first\nsecond\nthird\n")
    running.expect(json.dumps({"said": ["first\nsecond\nthird"]})[:-1])
    running.expect("> ")
    running.send("/quit\n")
    assert running.finish() == 0


def test_line_that_ends_with_a_backslash_goes_on(terminal: Open) -> None:
    running = terminal("chat", "-m", "toy:echo")

    running.expect("> ")
    running.send("first\\\n")
    running.expect("... ")
    running.send("second\n")
    running.expect(json.dumps({"said": ["first\nsecond"]})[:-1])
    running.expect("> ")
    running.send("/quit\n")
    assert running.finish() == 0


def test_ctrl_c_stops_the_turn_and_not_the_chat(terminal: Open) -> None:
    running = terminal("chat", "-m", "toy:silent")

    running.expect("> ")
    running.send("hello\n")
    running.expect("thinking")
    running.send(CTRL_C)
    running.expect("safe point")
    running.expect("stopped by Ctrl-C after 1 iteration, no tool ran, ")
    running.expect("> ")
    running.insist(CTRL_C, "(Ctrl-D or /quit leaves)")
    running.send("/tokens\n")
    running.expect("1 turn")
    running.send("/quit\n")
    assert running.finish() == 0
