"""The picture at the top of the README: a terminal in which `locus` runs, as SVG.

``python -m docs.picture`` runs the commands again and writes `docs/pages/assets/terminal.svg`. The commands are real,
in a terminal of this program. The model behind them is a server on this machine that answers from a script, so that
each recording says the same. tests/docs/test_picture.py records again and compares the texts.
"""

from __future__ import annotations

import html
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from fcntl import ioctl
from io import StringIO
from pathlib import Path
from termios import TIOCSWINSZ

from plugins.openai.tests.emulator import Emulator
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from locus_testkit import call

__all__ = ["COMMANDS", "PICTURE", "draw", "picture_text", "record"]

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pages" / "assets" / "terminal.svg"

#: What is typed, at the top of a checkout, and what the model answers.
COMMANDS = (
    'locus run "What is 1234 * 5678? Use the tool." --tools contrib/examples/arithmetic.py',
    'locus run --continue "And the half of it?"',
)
_TURNS = (
    call("multiply", a=1234, b=5678),
    "1234 * 5678 is 7006652.",
    call("divide", a=7006652, b=2),
    "The half of it is 3503326.",
)
_COLUMNS, _ROWS = 96, 40
#: Around the text, in the units of the picture.
_MARGIN = 12

_THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
)
#: As rich draws it, without the frame of a window and without a font that a browser would fetch.
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}">
<title>locus in a terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
 font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect fill="#161b22" x="-12" y="-12" width="100%" height="100%" rx="8"/>
<g clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

#: Times differ from run to run.
_TIME = re.compile(r"\d[\d,.]* (?:ms|s)\b")
#: A status line that the program has wiped, up to the last time that it did.
_WIPED = re.compile(r".*\r\x1b\[2K")


def record() -> list[tuple[str, str]]:
    """The commands, and what each printed to its terminal, with its colours.

    Raises:
        CalledProcessError: a command failed.
    """
    emulator = Emulator("chat", *_TURNS)
    with emulator.server as server, tempfile.TemporaryDirectory() as folder:
        environ = {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "HOME": folder,
            "LOCUS_STATE": folder,
            "LOCUS_MODEL": "openai:gpt-5-mini",
            "OPENAI_API_KEY": "sk-of-a-recording",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        return [(command, _run_in_terminal(command, environ)) for command in COMMANDS]


def _run_in_terminal(command: str, environ: dict[str, str]) -> str:
    ours, its = pty.openpty()
    ioctl(its, TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S603  # a command of this file
        shlex.split(command), cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=its, stderr=its
    ) as process:
        os.close(its)
        pieces = []
        try:
            while piece := os.read(ours, 65_536):
                pieces.append(piece)
        except OSError:  # Linux says so when the last who had the terminal has ended
            pass
        os.close(ours)
    text = b"".join(pieces).decode()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, text)
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(_WIPED.sub("", line) for line in lines).strip("\n")


def draw(recorded: list[tuple[str, str]]) -> str:
    """The recording as SVG."""
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for command, printed in recorded:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(printed))
    svg = console.export_svg(theme=_THEME, code_format=_FORMAT, unique_id="locus")
    svg = re.sub(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', _with_margin, svg)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def _with_margin(box: re.Match[str]) -> str:
    return f'viewBox="{-_MARGIN} {-_MARGIN} {float(box[1]) + 2 * _MARGIN:g} {float(box[2]) + 2 * _MARGIN:g}"'


def picture_text(svg: str) -> str:
    """The text in a picture, line by line; of a time only that it is there."""
    lines: dict[float, str] = {}
    for line, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        lines[float(line)] = lines.get(float(line), "") + html.unescape(text).replace("\xa0", " ")
    return _TIME.sub("...", "\n".join(text.rstrip() for _, text in sorted(lines.items())))


if __name__ == "__main__":
    PICTURE.write_text(draw(record()), encoding="utf-8")
