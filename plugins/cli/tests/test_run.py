"""``locus run``: what it shows, what it says, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import termios
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus.core.events import ModelChunkEvent, TerminateEvent, event_from_json

Locus = Callable[..., Any]


# --- the view -----------------------------------------------------------------------------------


def test_run_shows_text_calls_results_tokens_and_why_it_stopped(locus: Locus, tools: str) -> None:
    done = locus("run", "What is it?", "--model", "toy:product", "--tools", tools)

    assert done.status == 0
    assert done.err == ""
    shown = done.out.splitlines()
    assert shown[:3] == ["toy:product", "iteration 1", "Let me see. "]
    assert shown[3].startswith("  1,200 tokens in (1,000 cached), 30 out, ")
    assert shown[4] == "→ multiply(a=1234, b=5678)"
    assert shown[5].startswith("← multiply (")
    assert shown[5].endswith(" ms): 7006652")
    assert shown[6:8] == ["iteration 2", "The product is 7006652."]
    assert shown[9].startswith("stopped: NoToolCalls")
    assert shown[9].endswith("2 iterations, 1 tool call, 2,460 tokens (2,000 cached)")
    assert "\x1b" not in done.out


def test_tools_that_are_named_twice_are_loaded_once(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:product", "-t", tools, "-t", tools)

    assert (done.status, done.err) == (0, "")


def test_failed_calls_are_shown_with_their_errors(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:wrong", "-t", tools)

    assert done.status == 0
    assert '← multiply(a="x", b=1) failed: ArgumentError' in done.out
    assert "← divide(a=1) failed: UnknownTool" in done.out


def test_what_a_model_says_cannot_drive_the_terminal(locus: Locus) -> None:
    done = locus("run", "x", "-m", "toy:evil")

    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert "\\x1b[31mred" in done.out


def test_reasoning_is_shown_on_lines_of_its_own(locus: Locus) -> None:
    done = locus("run", "x", "-m", "toy:thinks")

    assert "Hm, let me think.\nBecause.\n" in done.out


def test_quiet_prints_the_answer_alone(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:product", "-t", tools, "--quiet")

    assert (done.status, done.out, done.err) == (0, "The product is 7006652.\n", "")


def test_output_without_the_characters_gets_others(process: Locus, tools: str) -> None:
    done = process("run", "x", "-m", "toy:product", "-t", tools, PYTHONIOENCODING="ascii")

    assert done.status == 0
    assert "-> multiply(a=1234, b=5678)" in done.out


# --- the options --------------------------------------------------------------------------------


def test_prompt_comes_from_standard_input(process: Locus) -> None:
    done = process("run", "-", "-m", "toy:echo", "-q", stdin="grüße\n".encode())

    assert json.loads(done.out)["said"] == ["grüße\n"]


@pytest.mark.parametrize(
    ("words", "piped", "said"),
    [
        (["Summarise this:"], b"one\ntwo\n", "Summarise this:\n\none\ntwo\n"),
        (["Summarise this:", "-"], b"one", "Summarise this:\n\none"),
        ([], b"\xef\xbb\xbfone", "one"),
        (["Say hello."], b"", "Say hello."),
        (["Say hello."], b" \n", "Say hello."),
    ],
)
def test_piped_input_is_part_of_the_prompt(process: Locus, words: list[str], piped: bytes, said: str) -> None:
    done = process("run", *words, "-m", "toy:echo", "-q", stdin=piped)

    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["said"] == [said]


def test_file_is_part_of_the_prompt(environment: dict[str, str], here: Path) -> None:
    (here / "notes.txt").write_text("one")
    line = f"{sys.executable} -m locus run 'Summarise:' -m toy:echo -q < notes.txt"
    done = subprocess.run(["sh", "-c", line], env=environment, cwd=here, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["said"] == ["Summarise:\n\none"]


@pytest.mark.parametrize("words", [["Summarise:"], ["Summarise:", "-"], ["-"], []])
def test_piped_input_that_is_no_text_is_one_line(process: Locus, words: list[str]) -> None:
    done = process("run", *words, "-m", "toy:echo", stdin=b"ab\xff")

    assert (done.status, done.out) == (2, "")
    assert done.err == "locus: standard input is not UTF-8 text: byte 0xff at position 2; convert it first\n"


def test_endless_input_is_one_line(environment: dict[str, str], here: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "locus", "run", "Summarise:", "-m", "toy:echo"],
            env=environment,
            stdin=endless,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "locus: standard input has more than 50 MB; give the part that the model needs\n"


#: The command with less patience for pipes.
_IMPATIENT = (
    "import runpy; from locus_plugin_cli import prompt_input; prompt_input.PATIENCE = 0.1; "
    "runpy.run_module('locus', run_name='__main__')"
)


def idle(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard input is a pipe that stays open and says nothing."""
    reader, writer = os.pipe()
    try:
        return subprocess.run(
            [sys.executable, "-c", _IMPATIENT, *arguments],
            env=environment,
            stdin=reader,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(writer)


def test_pipe_that_says_nothing_is_left_out(environment: dict[str, str]) -> None:
    done = idle(environment, "run", "Say hello.", "-m", "toy:echo", "-q")

    assert done.returncode == 0
    assert json.loads(done.stdout)["said"] == ["Say hello."]
    assert done.stderr.startswith("locus: nothing came from standard input within 0.1 s, so it is left out; `-` behind")


def test_pipe_that_says_nothing_is_no_prompt(environment: dict[str, str]) -> None:
    done = idle(environment, "run", "-m", "toy:echo")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("locus run: Missing argument 'PROMPT'")


def test_slow_input_is_waited_for_once_it_has_begun(environment: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"one")
    running = subprocess.Popen(
        [sys.executable, "-c", _IMPATIENT, "run", "-m", "toy:echo", "-q"],
        env=environment,
        stdin=reader,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running, os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as pipe:
        while unread(reader):
            assert running.poll() is None
        pipe.write(b"two")
        pipe.close()
        said, _ = running.communicate(timeout=60)

    assert json.loads(said)["said"] == ["onetwo"]


def unread(number: int) -> int:
    """The bytes that wait in a pipe."""
    waiting = array("i", [0])
    fcntl.ioctl(number, termios.FIONREAD, waiting)
    return waiting[0]


def test_prompt_without_quotes_is_one_line_that_shows_them(locus: Locus) -> None:
    done = locus("run", "say", "hello", "-m", "toy:echo")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("locus run: expected one PROMPT, got 2 words; put it in quotes: 'say hello' (see ")


def test_prompt_with_a_nul_is_a_prompt(process: Locus) -> None:
    done = process("run", "-", "-m", "toy:echo", "-q", stdin=b"a\0b")

    assert (done.status, json.loads(done.out)["said"]) == (0, ["a\0b"])


def test_prompt_of_ten_megabytes_is_a_prompt(process: Locus) -> None:
    done = process("run", "-", "-m", "toy:echo", "-q", stdin=b"x" * 10_000_000)

    assert done.status == 0
    assert len(json.loads(done.out)["said"][0]) == 10_000_000


def test_prompt_that_begins_with_a_dash_goes_behind_two(locus: Locus) -> None:
    done = locus("run", "-m", "toy:echo", "-q", "--", "-5 + 3")

    assert json.loads(done.out)["said"] == ["-5 + 3"]


def test_system_prompt_is_text_or_a_file(locus: Locus, here: Path) -> None:
    (here / "system.txt").write_text("From a file.", encoding="utf-8")

    def system(text: str) -> list[str]:
        done = locus("run", "x", "-m", "toy:echo", "-q", "--system", text)
        found: list[str] = json.loads(done.out)["system"]
        return found

    assert system("Be brief.") == ["Be brief."]
    assert system("@system.txt") == ["From a file."]
    assert system("@@home") == ["@home"]


def test_model_settings_reach_the_model(locus: Locus) -> None:
    done = locus("run", "x", "-m", "toy:echo", "-q", "--temperature", "0.5", "--max-tokens", "9", "--seed", "3")

    assert json.loads(done.out)["temperature"] == 0.5


def test_tools_come_from_several_files_and_modules(locus: Locus, here: Path, tools: str) -> None:
    (here / "my_more_tools.py").write_text('def divide(a: float) -> float:\n    """Halve."""\n    return a / 2\n')

    done = locus("run", "x", "-m", "toy:wrong", "-t", tools, "-t", "my_more_tools")

    assert done.status == 0
    assert "← divide (" in done.out
    assert "): 0.5" in done.out


def test_iterations_are_bounded(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:naps", "-t", tools, "--max-iterations", "3")

    assert done.status == 0
    assert "stopped: MaxIterations" in done.out
    assert "3 iterations" in done.out


def test_configuration_gives_what_the_line_leaves_out(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[agent]\nmodel = "toy:echo"\nsystem_prompt = "Be kind."\n')

    done = locus("run", "x", "-q")

    assert json.loads(done.out)["system"] == ["Be kind."]


def test_configured_settings_reach_the_provider(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text("[plugins.toy]\nlevle = 3\n")

    done = locus("run", "x", "-m", "toy:echo")

    assert done.status == 2
    assert "plugins.toy.levle is not a setting; did you mean 'level'?" in done.err


def test_plugin_that_is_missing_is_a_warning(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins]\nenabled = ["nope"]\n')

    done = locus("run", "x", "-m", "toy:echo", "-q")

    assert done.status == 0
    assert len(done.lines) == 1
    assert "warning: without nope (missing)" in done.err


def test_plugins_are_switched_on_and_off(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins]\nenabled = ["nope"]\n')

    assert locus("run", "x", "-m", "toy:echo", "-q", "--no-plugins").err == ""
    assert locus("run", "x", "-m", "toy:echo", "-q", "-p", "no:nope").err == ""
    started = locus("run", "x", "-m", "toy:echo", "--json", "--no-plugins", "-p", "toy").out.splitlines()[0]
    assert json.loads(started)["plugins"] == {"toy": "1.0"}


def test_several_plugins_are_switched_on_with_commas_between_them(locus: Locus) -> None:
    started = locus("run", "x", "-m", "toy:echo", "--json", "-p", "toy, cli").out.splitlines()[0]

    assert set(json.loads(started)["plugins"]) == {"toy", "cli", "provenance"}
    done = locus("run", "x", "-m", "toy:echo", "-p", "toy,")
    assert (done.status, done.lines) == (
        2,
        [
            "locus run: Invalid value for '-p' / '--plugin': 'toy,' has an empty name; "
            "write NAME or NAME,NAME (see locus run --help)"
        ],
    )


# --- errors: one line and a status ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["run", "x", "-m", "toy:fails"], 1, "the run failed: ModelError: the provider said no"),
        (["run", "x", "-m", "toy:cut"], 1, "the run failed: Truncated: the answer was cut at the length limit"),
        (["run", "x", "-m", "toy:nope"], 1, "KeyError: 'nope' (while plugin 'toy' made the model 'toy:nope')"),
        (["run", "x", "-m", "tyo:echo"], 2, "did you mean 'toy'?"),
        (["run", "x", "-m", "echo"], 2, "'echo' names no plugin"),
        (["run", "x"], 2, "no model is chosen"),
        (["run", "", "-m", "toy:echo"], 2, "the prompt is empty"),
        (["run", " \n", "-m", "toy:echo"], 2, "the prompt is empty"),
        (["run", "a\udcffb", "-m", "toy:echo"], 2, "lone surrogate"),
        (["run", "-m", "toy:echo"], 2, "Missing argument 'PROMPT'"),
        (["run", "x", "-m", "toy:echo", "-t", "nope.py"], 2, "file not found"),
        (["run", "x", "-m", "toy:echo", "-t", "no_such_module"], 2, "module 'no_such_module' was not found"),
        (["run", "x", "-m", "toy:echo", "-s", "@nope.txt"], 2, "nope.txt cannot be read"),
        (["run", "x", "-m", "toy:echo", "-p", "nope"], 2, "unknown plugin 'nope'"),
        (["run", "x", "-m", "toy:echo", "--config", "nope.toml"], 2, "nope.toml cannot be read"),
        (["run", "x", "-m", "toy:echo", "--checkpointer", "nope:x"], 2, "unknown checkpointer provider 'nope'"),
        (["run", "x", "-m", "toy:echo", "--max-iterations", "0"], 2, "0 is not in the range x>=1"),
        (["run", "x", "-m", "toy:echo", "--temperature", "nan"], 2, "'nan' is no finite number"),
        (["run", "x", "-m", "toy:echo", "--temperature", "inf"], 2, "'inf' is no finite number"),
        (["run", "x", "-m", ""], 2, "'--model': it is empty; leave the option out, or give it a value"),
        (["run", "x", "-m", "toy:echo", "--thread", " "], 2, "'--thread': it is empty"),
        (["run", "x", "-m", "toy:echo", "--tools", ""], 2, "'--tools': it is empty"),
        (["run", "x", "-m", "toy:echo", "--checkpointer", ""], 2, "'--checkpointer': it is empty"),
        (["run", "x", "-m", "toy:echo", "--config", ""], 2, "'--config': it is empty"),
        (["run", "x", "-m", "toy:echo", "-p", ""], 2, "'--plugin': it is empty"),
        (["run", "x", "-m", "toy:echo", "-p", "no:tyo"], 2, "unknown plugin 'tyo'; did you mean 'toy'?"),
        (["run", "x", "-m", "toy:echo", "-p", "no:"], 2, "'no:' (command line) names no plugin"),
        (["run", "x", "--modle", "toy:echo"], 2, "Did you mean '--model'?"),
        (["run", "-5 + 3"], 2, "text that starts with '-' goes behind '--'"),
        (["run", "x", "--json", "--quiet", "-m", "toy:echo"], 2, "exclude each other"),
        (["run", "x", "--resume", "-m", "toy:echo"], 2, "--resume takes no PROMPT"),
        (["run", "--resume", "-m", "toy:echo"], 2, "conversations cannot be kept here"),
        (["run", "x", "--answer", "y", "-m", "toy:echo"], 2, "--answer goes with --resume"),
        (["run", "--resume", "--thread", "none", "--checkpointer", "toy:a", "-m", "toy:echo"], 2, "there is no thread"),
        (["run", "x", "--no-keep", "--checkpointer", "toy:a"], 2, "--no-keep excludes --checkpointer"),
        (["run", "--resume", "--no-keep"], 2, "--no-keep excludes --resume"),
        (["rnu", "x"], 2, "Did you mean 'run'?"),
        (["--nope"], 2, "No such option '--nope'"),
    ],
)
def test_error_is_one_line_and_a_status(locus: Locus, arguments: list[str], status: int, said: str) -> None:
    done = locus(*arguments)

    assert said in done.err
    assert done.status == status
    assert len(done.lines) == 1, done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("x = 1\n", "holds no tools"),
        ("import no_such_thing\n", "no_such_thing"),
        ("from locus import tool\n@tool\ndef f(a: object()): ...\n", "a"),
    ],
)
def test_tools_that_cannot_be_loaded_are_one_line(locus: Locus, here: Path, source: str, said: str) -> None:
    (here / "bad.py").write_text(source)

    done = locus("run", "x", "-m", "toy:echo", "--tools", "bad.py")

    assert said in done.err
    assert "bad.py" in done.err
    assert (done.status, len(done.lines)) == (2, 1)


def test_tools_of_one_name_are_one_line_that_names_both(locus: Locus, here: Path, tools: str) -> None:
    (here / "mine.py").write_text('def multiply(a: int) -> int:\n    """Mine."""\n    return a\n')

    done = locus("run", "x", "-m", "toy:echo", "-t", tools, "-t", "mine.py")

    assert (done.status, len(done.lines)) == (2, 1)
    assert "'multiply'" in done.err
    assert "mine" in done.err
    assert "toy_tools" in done.err


@pytest.mark.parametrize("prompt", [["x"], ["--resume"]])
def test_thread_of_a_later_version_is_one_line_and_left_alone(locus: Locus, prompt: list[str]) -> None:
    done = locus("run", *prompt, "-m", "toy:echo", "--thread", "t", "--checkpointer", "toy:newer")

    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert "99" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [["run", "x"], ["run", "x", "--json"], ["run", "x", "-q"], ["chat"], ["models"]])
def test_output_that_takes_nothing_more_is_one_line(environment: dict[str, str], command: list[str]) -> None:
    line = [sys.executable, "-m", "locus_plugin_cli", *command]
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device
        done = subprocess.run(
            line,
            env={**environment, "LOCUS_MODEL": "toy:echo"},
            input=b"one\ntwo\n",
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    said = [text for text in done.stderr.decode().splitlines() if "Ctrl-D leaves" not in text]
    assert (done.returncode, said) == (1, ["locus: the output cannot be written: No space left on device"])


@pytest.mark.parametrize(
    ("redirected", "status"), [("<&-", 2), (">&-", 0), ("2>&-", 0), ("<&- >&-", 2), ("<&- >&- 2>&-", 2)]
)
def test_closed_streams_lead_nowhere(environment: dict[str, str], redirected: str, status: int) -> None:
    prompt = "-" if "<" in redirected else "x"
    line = f"{sys.executable} -m locus_plugin_cli run {prompt} -m toy:echo {redirected}"
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == status
    expected = "locus: the prompt is empty; say what the agent is to do\n" if status and "2>" not in redirected else ""
    assert done.stderr == expected


def test_input_that_is_no_text_is_one_line(process: Locus) -> None:
    done = process("run", "-", "-m", "toy:echo", stdin=b"ab\xff")

    assert (done.status, done.out) == (2, "")
    assert done.err == "locus: standard input is not UTF-8 text: byte 0xff at position 2; convert it first\n"


def test_traceback_only_with_debug(locus: Locus) -> None:
    plain = locus("run", "x", "-m", "toy:fails")
    behind = locus("run", "x", "-m", "toy:fails", "--debug")
    before = locus("--debug", "run", "x", "-m", "toy:nope")

    assert "Traceback" not in plain.err
    assert "Traceback (most recent call last)" in behind.err
    assert "ModelError: the provider said no" in behind.err
    assert "Traceback (most recent call last)" in before.err


def test_wrong_settings_are_all_told_at_once(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins.toy]\nlevel = "7"\nkye = 1\n')

    done = locus("run", "x", "-m", "toy:echo")

    assert done.status == 2
    assert len(done.lines) == 2
    assert "plugins.toy.level is '7'; expected an integer" in done.err
    assert "plugins.toy.kye is not a setting; did you mean 'key'?" in done.err


# --- JSON ---------------------------------------------------------------------------------------


def test_json_is_one_event_a_line_and_nothing_else(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:product", "-t", tools, "--json")

    events = [event_from_json(json.loads(line)) for line in done.out.splitlines()]
    assert done.status == 0
    assert done.err == ""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert "".join(e.text for e in events if isinstance(e, ModelChunkEvent) and e.kind == "text") == (
        "Let me see. The product is 7006652."
    )
    last = events[-1]
    assert isinstance(last, TerminateEvent)
    assert last.final_message == "The product is 7006652."


def test_json_lines_are_ascii(locus: Locus) -> None:
    done = locus("run", "grüße", "-m", "toy:evil", "--json")

    assert done.out.isascii()
    assert done.status == 0


def test_json_of_a_failed_run_ends_with_its_end(locus: Locus) -> None:
    done = locus("run", "x", "-m", "toy:fails", "--json")

    assert done.status == 1
    assert json.loads(done.out.splitlines()[-1])["error"] == "ModelError: the provider said no"
    assert done.err == "locus: the run failed: ModelError: the provider said no\n"


def test_each_line_is_flushed_as_its_event_happens(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "locus_plugin_cli", "run", "x", "-m", "toy:silent", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        # The model never answers, so these lines arrive only if nothing holds them back.
        types = [json.loads(running.stdout.readline())["type"] for _ in range(3)]
        running.kill()

    assert types == ["run_start", "checkpoint", "iteration"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "x", "-m", "toy:long", "--json"],
        ["run", "x", "-m", "toy:long", "--quiet"],
        ["run", "x", "-m", "toy:long"],
        ["run", "--help"],
        ["--version"],
        ["plugins"],
        ["config", "check"],
    ],
)
def test_reader_that_goes_away_ends_it_quietly(environment: dict[str, str], arguments: list[str]) -> None:
    command = [sys.executable, "-m", "locus_plugin_cli", *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
        status = running.wait()

    assert (status, said) == (141, b"")


# --- questions ----------------------------------------------------------------------------------


def test_question_that_nobody_can_answer_is_a_status_of_its_own(locus: Locus, tools: str) -> None:
    done = locus("run", "x", "-m", "toy:asks", "-t", tools)

    assert done.status == 3
    assert "Delete it? [yes | no]" in done.err
    assert "keep it with --checkpointer" in done.err


def test_kept_question_is_answered_by_the_command_that_is_shown(locus: Locus, tools: str) -> None:
    asked = locus("run", "x", "-m", "toy:asks", "-t", tools, "--thread", "t", "--checkpointer", "toy:q")
    assert asked.status == 3
    shown = asked.lines[-1]
    # Model and tools are remembered by the thread.
    assert shown == "locus: answer with: locus run --thread t --checkpointer toy:q --resume --answer ANSWER"

    words = shown.removeprefix("locus: answer with: locus ").replace("ANSWER", "yes").split()
    answered = locus(*words)

    assert answered.status == 0
    assert "the person said yes" in answered.out
    assert "Done." in answered.out


def test_several_questions_are_answered_by_their_ids(locus: Locus, tools: str) -> None:
    common = ["-m", "toy:asks_twice", "-t", tools, "--thread", "t", "--checkpointer", "toy:twice"]
    asked = locus("run", "x", *common)
    ids = [line.partition("(")[2].partition(")")[0] for line in asked.lines if "asks (" in line]

    unnamed = locus("run", "--resume", *common, "--answer", "yes", "--answer", "no")
    answered = locus("run", "--resume", *common, "--answer", f"{ids[0]}=yes", "--answer", f"{ids[1]}=no")

    assert len(ids) == 2
    assert unnamed.status == 2
    assert "does not say which question it is for" in unnamed.err
    assert answered.status == 0
    assert "the person said yes" in answered.out
    assert "the person said no" in answered.out


def test_thread_in_memory_says_that_it_ends(locus: Locus) -> None:
    done = locus("run", "x", "-m", "toy:echo", "--thread", "t")

    assert done.lines == ["locus: the conversation 't' ends with this command; --checkpointer keeps it"]


def test_kept_thread_goes_on(locus: Locus) -> None:
    common = ["-q", "-m", "toy:echo", "--thread", "t", "--checkpointer", "toy:on"]

    locus("run", "one", *common)
    done = locus("run", "two", *common)

    assert json.loads(done.out)["said"] == ["one", "two"]
    assert done.err == ""


def test_a_plugin_that_is_required_cannot_be_switched_off_here(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('required = ["toy"]\n')

    done = locus("run", "x", "-m", "toy:product", "-p", "no:toy")

    assert done.status == 2
    assert done.err == "locus: plugin 'toy' is required and switched off by 'no:toy' (command line); drop one\n"
