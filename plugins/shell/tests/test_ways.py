"""How the plugin chooses between bwrap and unshare, and the error when neither works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from locus.core.errors import ConfigError, UnknownName
from locus_plugin_shell import Sandbox, ShellHook, ShellSettings
from locus_plugin_shell.doctor import examine
from locus_plugin_shell.settings import Way

from .kit import sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The choice is made before anything is awaited."""
    return "asyncio"


def find(root: Path, way: Way = "auto") -> Sandbox:
    return Sandbox.find(ShellSettings(root=str(root), sandbox=way), root)


def failing(folder: Path) -> Path:
    """A program named bwrap that cannot make namespaces."""
    folder.mkdir(parents=True)
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    return program


async def test_bwrap_is_taken_where_there_is_one(tmp_path: Path, bwrap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bwrap.parent), prepend=os.pathsep)
    made = find(tmp_path)
    assert made.bwrap == str(bwrap)
    assert (await made.run("tr '\\0' ' ' < /proc/1/cmdline", 30.0)).output.startswith(str(bwrap))
    assert find(tmp_path, "unshare").bwrap is None


async def test_unshare_is_taken_where_bwrap_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    made = find(tmp_path)
    assert made.bwrap is None
    assert "launcher.py" in (await made.run("tr '\\0' ' ' < /proc/1/cmdline", 30.0)).output
    with pytest.raises(ConfigError, match=r"with sandbox='bwrap': bwrap is not on PATH .*install bubblewrap 0\.8"):
        find(tmp_path, "bwrap")


def test_a_bwrap_that_fails_is_passed_over_or_named_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(failing(tmp_path / "bin").parent), prepend=os.pathsep)
    root = tmp_path / "work"
    root.mkdir()
    assert find(root).bwrap is None
    with pytest.raises(ConfigError, match="with sandbox='bwrap': bwrap: setting up uid map: Permission denied"):
        find(root, "bwrap")


def test_a_bwrap_that_commands_could_have_written_is_not_started(
    tmp_path: Path, bwrap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    inside = failing(root / "bin")
    linked = tmp_path / "linked"
    linked.symlink_to(inside.parent)
    file = tmp_path / "file"
    file.mkdir()
    (file / "bwrap").symlink_to(inside)
    monkeypatch.chdir(root)
    untrusted = [str(inside.parent), "bin", "", str(linked), str(file)]
    for each in untrusted:
        monkeypatch.setenv("PATH", each)
        with pytest.raises(ConfigError, match="bwrap is not on PATH"):
            find(root, "bwrap")
    monkeypatch.setenv("PATH", os.pathsep.join([*untrusted, str(bwrap.parent)]))
    assert find(root, "bwrap").bwrap == str(bwrap)


def test_a_bwrap_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = failing(tmp_path / "bin")
    program.write_text("#!/no/such/interpreter\n")
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(ConfigError, match=r"bwrap: start: .*No such file or directory"):
        find(tmp_path / "work", "bwrap")


def test_without_namespaces_the_agent_is_not_built_and_both_reasons_are_said(tmp_path: Path, bwrap: Path) -> None:
    """The kernel's own refusal: a limit of namespaces that another user namespace sets for what is below it."""
    program = (
        "from locus.core.errors import ConfigError\nfrom locus_plugin_shell import ShellHook, ShellSettings\n"
        "import sys\ntry:\n    ShellHook(ShellSettings(root=sys.argv[1]))\nexcept ConfigError as e:\n    print(e)\n"
    )
    inside = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "
        f'{sys.executable} -c "$0" "$1"'
    )
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-user=1000",
            "--map-group=1000",
            "--keep-caps",
            "sh",
            "-c",
            inside,
            program,
            str(tmp_path),
        ],
        env={**os.environ, "PATH": f"{bwrap.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("shell: commands cannot run in a sandbox here: bwrap: "), done
    assert "Creating new namespace failed" in done.stdout
    assert "; unshare of user, mount, pid, net, ipc and uts: " in done.stdout
    assert "unsafe_host=True" in done.stdout


def test_another_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ConfigError, match="needs Linux, got darwin"):
        ShellHook(ShellSettings(root=str(tmp_path)))


@pytest.mark.usefixtures("way")
async def test_a_command_is_not_begun_where_the_sandbox_can_no_longer_be_built(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    made = sandbox(root)
    root.rmdir()
    with pytest.raises(RuntimeError, match=r"the sandbox could not be built: .*No such file"):
        await made.run("touch began", 5.0)


async def test_the_doctor_says_what_makes_the_sandbox(
    tmp_path: Path, bwrap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bwrap.parent))
    settings = ShellSettings(root=str(tmp_path))
    assert await examine(settings, "") == [("sandbox", "", f"made by {bwrap}")]
    assert await examine(evolve(settings, sandbox="unshare"), "sandbox") == [
        ("sandbox", "", "made by the plugin itself, with unshare")
    ]
    assert "unsafe_host is set" in (await examine(evolve(settings, unsafe_host=True), ""))[0][2]
    monkeypatch.setenv("PATH", "")
    ((subject, problem, _),) = await examine(evolve(settings, sandbox="bwrap"), "")
    assert subject == "sandbox"
    assert "bwrap is not on PATH" in problem
    with pytest.raises(UnknownName, match="part of shell"):
        await examine(settings, "network")
