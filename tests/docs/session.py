"""One reading of a document: its blocks run in order, share one namespace and one folder, and print what it says."""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import anyio
from tests.docs import stand_in
from tests.docs.markdown import Block

from locus.config import load_config

__all__ = ["Session", "alike", "console", "run"]

#: The programs that console blocks may call.
_PROGRAMS = {"locus": ["-m", "locus_plugin_cli"], "pytest": ["-m", "pytest"], "python": []}


class Session:
    """A document that is being followed.

    Args:
        module: what its code runs in.
        folder: an empty folder, the current one.
        backend: ``"asyncio"`` or ``"trio"``, for snippets with ``await`` at their top level.
    """

    def __init__(self, module: ModuleType, folder: Path, backend: str = "asyncio") -> None:
        self._names, self._folder, self._backend = module.__dict__, folder, backend
        self._printed = ""

    def follow(self, block: Block, *, commands: bool = True) -> None:
        """Do what a reader would do with a block.

        Args:
            block: the block.
            commands: False leaves the commands of console blocks out.
        """
        if "peer" in block.comments:
            return  # for another library: tests/docs/test_peers.py runs it
        if "output" in block.comments:
            self._compare(block)
        elif block.language == "toml":
            self._configure(block)
        elif "file" in block.comments:
            self._write(block.comments["file"], block.text)
        elif block.language in ("python", "setup"):
            self._run(block)
        elif block.language == "console" and commands and not {"e2e", "recorded-run"} & block.comments.keys():
            for command, printed in console(block.text):
                self._command(block, command, printed)

    # -- what there is to do ----------------------------------------------------------------------

    def _run(self, block: Block) -> None:
        # Empty lines first: a traceback then names the document and its own line.
        source = "\n" * (block.line - 1) + block.text
        code = compile(source, str(block.path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        printed = StringIO()
        with redirect_stdout(printed), stand_in.script(block.comments.get("model")):
            if code.co_flags & inspect.CO_COROUTINE:
                anyio.run(eval, code, self._names, backend=self._backend)
            else:
                exec(code, self._names)
        if block.language != "setup":
            self._printed = printed.getvalue()

    def _compare(self, block: Block) -> None:
        assert alike(block.text, self._printed), f"{block.where} says:\n{block.text}\nprinted was:\n{self._printed}"

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def _configure(self, block: Block) -> None:
        path = self._write(block.comments.get("file", "locus.toml"), block.text)
        if path.name == "pyproject.toml" and "locus" not in tomllib.loads(block.text).get("tool", {}):
            return  # of a plugin's distribution: it configures no agent
        load_config(path)

    def _command(self, block: Block, command: str, printed: str) -> None:
        done = run(command, self._folder)
        assert done.returncode == 0, f"{block.where}: {command!r} ended with {done.returncode}\n{done.stdout}"
        if printed:
            assert alike(printed, done.stdout), f"{block.where} says:\n{printed}\nprinted was:\n{done.stdout}"


def alike(said: str, printed: str) -> bool:
    """Whether what was printed is what a document says, where ``...`` stands for anything."""
    want, got = ("".join(f"{line.rstrip()}\n" for line in text.splitlines()) for text in (said, printed))
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)


def console(text: str) -> list[tuple[str, str]]:
    """The commands of a console block (the lines that begin with ``$``), each with what it is said to print."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (found[-1][0][:-1] + line.strip(), "")
        else:
            assert found, f"{line!r} stands before the first command"
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def run(command: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """One command of a console block, by the Python of this test."""
    program, *arguments = shlex.split(command)
    assert program in _PROGRAMS, f"{command!r}: console blocks call {', '.join(_PROGRAMS)}"
    return subprocess.run(
        [sys.executable, *_PROGRAMS[program], *arguments],
        cwd=folder,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "PYTHONSAFEPATH": "1",
            "COLUMNS": "100",
            "LOCUS_STATE": str(folder / "state"),
            **environ,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
