"""The tutorial as a stranger follows it, in a fresh environment: words, characters, and seconds of the machine.

    python contrib/bench/stranger.py             # with the embedded model; its weights are fetched, or in the cache
    python contrib/bench/stranger.py --keep DIR  # leaves the checkout, the environment and the transcript there

The pages are read from the checkout. Everything is done as they say: a copy of the checkout, a new virtual environment
outside of it, the blocks of commands in a shell, files written as they are, and the other Python blocks pasted into one
`python -m asyncio`, line by line. It fails where a block does. Reading is counted at 200 words a minute. A block is
pasted, in 5 seconds; a command behind a prompt is typed, 200 characters a minute.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs.markdown import Block, blocks, pages
from tests.docs.session import console
from tests.docs.test_end_to_end import checkout

#: Words that are read and characters that are typed in a minute; seconds that a block takes to be copied and pasted.
READ, TYPED, PASTE = 200, 200, 5.0
_DONE = "the block is done"


class Stranger:
    """A person at a terminal: a shell, and one session of Python."""

    def __init__(self, folder: Path) -> None:
        self.top = checkout(folder / "checkout")
        self.venv = folder / "venv"
        self.place = folder / "hotel"
        kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH") and "LOCUS" not in k}
        self.environ = {**kept, "PATH": f"{self.venv}/bin:{kept['PATH']}", "LOCUS_STATE": str(folder / "state")}
        self.environ["NO_COLOR"] = "1"
        self.transcript = (folder / "transcript.txt").open("w", encoding="utf-8")
        self._python: subprocess.Popen[str] | None = None

    def type(self, command: str, place: Path | None = None) -> str:
        """A command of the shell, to its good end."""
        done = subprocess.run(  # noqa: S603  # what the page says
            ["bash", "-euc", command],  # noqa: S607
            cwd=place or self.place,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(f"$ {command}\n{done.stdout}", file=self.transcript, flush=True)
        if done.returncode:
            raise SystemExit(f"{command!r} ended with {done.returncode}:\n{done.stdout[-3000:]}")
        return done.stdout

    def paste(self, text: str) -> str:
        """A block into `python -m asyncio`, and the end of a line behind it."""
        if self._python is None:
            self._python = subprocess.Popen(
                ["python", "-u", "-m", "asyncio"],  # noqa: S607  # that of the new environment
                cwd=self.place,
                env=self.environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                bufsize=1,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(f"{text}\nprint({_DONE!r})\n")
        self._python.stdin.flush()
        said = []
        for line in self._python.stdout:
            said.append(line)
            if _DONE in line:
                break
        printed = "".join(said)
        print(f">>> {text}\n{printed}", file=self.transcript, flush=True)
        if "Traceback" in printed or "SyntaxError" in printed:
            raise SystemExit(f"a block failed in Python:\n{text}\n{printed}")
        return printed

    def leave_python(self) -> None:
        """Ctrl-D."""
        if self._python is not None:
            assert self._python.stdin is not None
            self._python.stdin.close()
            self._python.wait(30)
            self._python = None

    def serve(self, command: str, use: str) -> float:
        """A command that serves until Ctrl-C; its address is opened, or used as the page says. Returns the seconds."""
        began = time.monotonic()
        log = self.place / "served.txt"
        with log.open("w") as out:
            process = subprocess.Popen(  # noqa: S603  # what the page says
                command.split(), cwd=self.place, env=self.environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:
            while "http://" not in (said := log.read_text()) or not said.endswith("\n"):
                if process.poll() is not None:
                    raise SystemExit(f"{command!r} ended: {said}")
                time.sleep(0.05)
            if use:
                self.type(use)
            else:
                url = said[said.index("http://") :].split()[0]
                opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                with opener.open(url) as answer:
                    answer.read()
            return time.monotonic() - began
        finally:
            process.terminate()
            process.wait(60)
            print(f"$ {command}\n{log.read_text()}", file=self.transcript, flush=True)


def words_of(path: Path) -> int:
    """How many words of a page are read: the text, its tables, and what is shown of outputs; not its programs."""
    text = re.sub(r"<!--.*?-->\n", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^```(?:python|sh|yaml)\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return len(re.sub(r"\]\([^)]*\)", "", text).split())


def follow(stranger: Stranger, path: Path) -> tuple[int, int, int, float]:
    """A page, done: characters that are typed, blocks and characters that are pasted, seconds of the machine."""
    typed = pasted = characters = 0
    took = 0.0
    serving = ""
    for block in blocks(path):
        began = time.monotonic()
        if block.language == "sh":
            pasted, characters = pasted + 1, characters + len(block.text)
            _install(stranger, block)
        elif block.language == "console":
            for command, _ in console(block.text):
                typed += len(command)
                if command == "python -m asyncio":
                    continue  # begins with the first block
                if command.startswith("mkdir"):
                    stranger.type(command.split("&&")[0], stranger.top)
                elif command.startswith("locus serve"):
                    serving = command  # until the command after it is done
                elif command.startswith("locus view"):
                    stranger.leave_python()
                    stranger.serve(command, "")
                elif serving:
                    stranger.serve(serving, command)
                    serving = ""
                else:
                    stranger.type(command)
        elif block.language in ("python", "yaml"):
            pasted, characters = pasted + 1, characters + len(block.text)
            if "file" in block.comments:
                (stranger.place / block.comments["file"]).write_text(block.text)
            else:
                stranger.paste(block.text)
        took += time.monotonic() - began
    return typed, pasted, characters, took


def _install(stranger: Stranger, block: Block) -> None:
    command = block.text.replace("\\\n", " ")
    # The environment of the pages is below the checkout; this one is outside of it.
    command = command.replace("-m venv .venv", f"-m venv {stranger.venv}").replace(". .venv/", f". {stranger.venv}/")
    stranger.type(command, stranger.top)


def main() -> None:
    parser = argparse.ArgumentParser(description="Follow the tutorial in a fresh environment, and time it.")
    parser.add_argument("--keep", type=Path, help="an empty folder in which everything is left")
    folder = parser.parse_args().keep or Path(tempfile.mkdtemp(prefix="stranger-"))
    folder.mkdir(parents=True, exist_ok=True)
    stranger = Stranger(folder.resolve())
    total = [0.0, 0.0, 0.0]
    print("| page | words | typed | blocks pasted | of characters | machine, s | reading, typing, s |")
    print("|---|---|---|---|---|---|---|")
    tutorial = [page for page in pages() if page.parent.name == "tutorial"]
    for path in [tutorial[-1], *tutorial[:-1]]:  # the index first
        words = words_of(path)
        typed, pasted, characters, took = follow(stranger, path)
        person = 60 * words / READ + 60 * typed / TYPED + PASTE * pasted
        total = [total[0] + words, total[1] + took, total[2] + person]
        print(f"| {path.stem} | {words} | {typed} | {pasted} | {characters} | {took:.0f} | {person:.0f} |", flush=True)
    print(f"\n{total[0]:.0f} words; person {total[2] / 60:.1f} min, machine {total[1] / 60:.1f} min")
    stranger.leave_python()
    stranger.transcript.close()
    if folder.name.startswith("stranger-"):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
