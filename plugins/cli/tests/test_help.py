"""Help: it is quick, it is complete, and the README says the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from locus_plugin_cli import status
from locus_plugin_cli.main import root

Locus = Callable[..., Any]
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""

    def walk(name: str, command: click.Command, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        if isinstance(command, click.Group):
            for sub in command.list_commands(ctx):
                found = command.get_command(ctx, sub)
                assert found is not None
                yield from walk(f"{name} {sub}", found, ctx)

    yield from walk("locus", root, click.Context(root))


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_neither_the_kernel_nor_rich(here: Path, argument: str) -> None:
    program = (
        "import sys; from locus_plugin_cli.main import invoke; status = invoke(sys.argv[1:]); "
        "import json; print(json.dumps([status, sorted({name.split('.')[0] for name in sys.modules})]))"
    )
    done = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True, check=True)

    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert {"locus", "rich", "attrs"} & set(modules) == set()


def test_every_command_says_what_it_does(locus: Locus) -> None:
    for name, _ in commands():
        done = locus(*name.split()[1:], "--help")
        assert done.status == 0
        assert f"Usage: {name}" in done.out


def test_a_group_alone_shows_its_help(locus: Locus) -> None:
    done = locus("plugin")

    assert done.status == 2
    assert "new" in done.err


@pytest.mark.usefixtures("locus")
def test_readme_names_every_command_and_option() -> None:
    missing = [name for name, _ in commands() if f"`{name}" not in README and f"{name} " not in README]
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                missing += [
                    f"{name} {o}" for o in parameter.opts if not re.search(rf"(?<![\w-]){re.escape(o)}\b", README)
                ]
    assert missing == []


def test_readme_names_every_exit_status() -> None:
    for name in status.__all__:
        assert f"| {getattr(status, name)} |" in README, name
