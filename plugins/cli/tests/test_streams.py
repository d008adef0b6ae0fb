"""What reaches a terminal: nothing of others raw. What reaches a program: nothing but the output."""

from __future__ import annotations

import ast
import json
import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_kit.invisible import is_visible
from locus_plugin_cli.output import Output, print_json, print_lines, print_rows, print_text, say, write_whole
from locus_plugin_cli.streams import Streams, print_error
from locus_plugin_cli.view.screen import Screen

Open = Callable[..., Any]
Process = Callable[..., Any]

#: A character of each kind that drives a terminal, or hides in it: title, clipboard, erasing, C1, backspace, return,
#: bidi override, zero width, tag, half of a surrogate pair.
NASTY = "\x1b]0;owned\x07\x1b[2J\x9b31m\x90\b\x7f\u202e\u2066\u200b\u200d\ufeff\U000e0041\ud800\u2028"

#: What this package itself may send: colours, and the beginning of a line that is written anew.
OWN = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[2K|\r\n")


def dangerous(text: str) -> set[str]:
    """What is left that a terminal obeys, or does not show."""
    return {c for c in OWN.sub("", text) if not is_visible(c)}


# -- a terminal of one's own ----------------------------------------------------------------------


@contextmanager
def streams_on_a_terminal() -> Iterator[Callable[[], str]]:
    """The standard streams of a command on a pseudo terminal; calling it gives what has arrived there."""
    master, slave = os.openpty()
    terminal = open(slave, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123, SIM115
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = terminal
    received = bytearray()

    def arrived() -> str:
        terminal.flush()
        while select.select([master], [], [], 0)[0]:
            received.extend(os.read(master, 65_536))
        return received.decode()

    try:
        with Streams():
            yield arrived
    finally:
        sys.stdout, sys.stderr = before
        terminal.close()
        os.close(master)


ANY_TEXT = st.text(st.characters() | st.sampled_from(NASTY + "\r\t\n[]"), max_size=200)

#: Every way out that the package has, and those that everybody has.
WAYS: dict[str, Callable[[str], object]] = {
    "print_text": print_text,
    "print_json": lambda text: print_json({text: [text]}),
    "print_lines": lambda text: print_lines([text]),
    "print_rows": lambda text: print_rows(("A", "B"), [(text, text)]),
    "write_whole": write_whole,
    "piece": lambda text: Output().piece(text, "bold red"),
    "say": say,
    "print_error": print_error,
    "screen": lambda text: Screen().line(text, "cyan"),
    "status": lambda text: Output().rewrite(text[:40]),
    "print": print,
    "standard error": lambda text: sys.stderr.write(text),
    "bytes": lambda text: sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass")),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(text=ANY_TEXT)
def test_no_character_that_drives_a_terminal_arrives_there(way: str, text: str) -> None:
    with streams_on_a_terminal() as arrived:
        WAYS[way](text)
        shown = arrived()

    assert dangerous(shown) == set()


@given(
    text=st.text(st.characters(exclude_categories=["C", "Z"]), max_size=50).filter(lambda t: all(map(is_visible, t)))
)
@settings(max_examples=40, deadline=None)
def test_ordinary_text_arrives_as_it_is(text: str) -> None:
    with streams_on_a_terminal() as arrived:
        print_text(f"[bold red]{text}[/] :smile: [link=http://x]")
        shown = arrived()

    assert shown == f"[bold red]{text}[/] :smile: [link=http://x]"


def test_a_stream_that_is_no_terminal_takes_everything_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with Streams():
        write_whole(f"{NASTY[:-2]}\n")

    assert capsys.readouterr().out == f"{NASTY[:-2]}\n"


# -- the whole command ----------------------------------------------------------------------------

NOISY = '''
"""A tool that writes wherever it can: when it is loaded and when it is called."""
import ctypes, os, subprocess, sys, threading
NASTY = ...

def noise(where):
    text = f"NOISE {where} {NASTY}"
    data = text.encode("utf-8", "replace") + b"\\n"
    print(text)
    print(text, file=sys.stderr)
    sys.stdout.buffer.write(data)
    sys.__stdout__.write(text.encode("utf-8", "replace").decode() + "\\n")
    os.write(1, data)
    os.write(2, data)
    ctypes.CDLL(None).puts(data)
    subprocess.run(["cat"], input=data, check=True)
    subprocess.run(["sh", "-c", "cat >&2"], input=data, check=True)
    thread = threading.Thread(target=print, args=(text,))
    thread.start()
    thread.join()

noise("loaded")

def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    noise("called")
    return a * b
'''.replace("...", repr(NASTY), 1)


@pytest.fixture
def noisy(here: Path) -> str:
    (here / "noisy.py").write_text(NOISY.encode("utf-8", "backslashreplace").decode(), encoding="utf-8")
    return "noisy.py"


def test_json_and_quiet_are_clean_whatever_a_tool_file_prints(process: Process, noisy: str) -> None:
    events = process("run", "x", "-m", "toy:product", "-t", noisy, "--json")
    quiet = process("run", "x", "-m", "toy:product", "-t", noisy, "-q")

    assert (events.status, quiet.status) == (0, 0)
    assert [json.loads(line)["type"] for line in events.out.splitlines()][-1] == "terminate"
    assert "NOISE" not in quiet.out
    assert quiet.out.count("\n") == 1
    for done in (events, quiet):
        assert done.err.count("NOISE loaded") == 10
        assert done.err.count("NOISE called") == 10


def test_nothing_that_a_tool_file_writes_reaches_the_terminal_raw(terminal: Open, noisy: str) -> None:
    for more in ((), ("-q",)):
        running = terminal("run", "x", "-m", "toy:product", "-t", noisy, *more)
        assert running.finish() == 0
        assert dangerous(running.output) == set()
        assert running.output.count("NOISE loaded") >= 9
        assert running.output.count("NOISE called") >= 9


@pytest.mark.parametrize("more", [(), ("-q",), ("--debug",), ("--json",)])
def test_nothing_that_a_model_says_reaches_the_terminal_raw(terminal: Open, more: tuple[str, ...]) -> None:
    said = NASTY.replace("\ud800", "")
    running = terminal("run", f"SAY {said}", "-m", "toy:verbatim", *more)
    assert running.finish() == 0
    assert dangerous(running.output) == set()
    assert "SAY" in running.output

    failing = terminal("run", "x", "-m", f"toy:nothing{said.replace(chr(0), '')}", *more)
    assert failing.finish() != 0
    assert dangerous(failing.output) == set()


def test_quiet_passes_the_answer_as_it_is_to_a_program(process: Process) -> None:
    done = process("run", "\x1b[31mred\u202e", "-m", "toy:verbatim", "-q")

    assert done.out == "\x1b[31mred\u202e\n"


# -- the source -----------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]

#: Modules with a way out of their own, and which.
ALLOWED = {
    "streams.py": {"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__", ".buffer", ".trusted"},
    "main.py": {"sys.stdout", "sys.stderr"},
    "entry.py": {"sys.stdout", "sys.stderr", "os.write"},
    "output.py": {"Console", ".trusted"},
    "view/screen.py": {"sys.stdout", "sys.stderr"},
    "line_history.py": {"os.write"},
    "commands/transfer.py": {".buffer"},
}


def ways_out(source: str) -> set[str]:
    """The names in a module through which text could go anywhere but by `streams`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""
        if text in {"print", "Console", "os.write", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}:
            found.add(text)
        if text in {
            "click.echo",
            "click.secho",
            "click.echo_via_pager",
            "traceback.print_exc",
            "traceback.print_exception",
        }:
            found.add(text)
        if isinstance(node, ast.Attribute) and node.attr in {"buffer", "trusted"}:
            found.add(f".{node.attr}")
        if isinstance(node, ast.Constant) and node.value in {"/dev/tty", "/dev/stdout", "/dev/stderr"}:
            found.add(node.value)
    return found


def test_there_is_one_way_out_of_the_command_line() -> None:
    own = ROOT / "plugins/cli/src/locus_plugin_cli"
    modules = [(path.relative_to(own).as_posix(), path) for path in own.rglob("*.py")]
    for path in (ROOT / "plugins").glob("*/src/*/**/*.py"):
        # The commands that other plugins bring.
        if own not in path.parents and "import click" in path.read_text():
            modules.append(("/".join(path.parts[-2:]), path))
    assert {name for name, _ in modules} >= {"streams.py", "commands/transfer.py", "commands/run.py"}

    raw = {name: ways_out(path.read_text()) - ALLOWED.get(name, set()) for name, path in modules}

    assert {name: found for name, found in raw.items() if found} == {}
