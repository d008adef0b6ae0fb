"""What a command in the sandbox can reach, and what stops it: with the namespaces of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import pytest

from locus.core.errors import ConfigError
from locus_plugin_shell import ShellHook, ShellSettings
from locus_plugin_shell import launcher as launcher_module

from .kit import MARK, children, run_command, sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What is shown here is the kernel's; `test_execute.py` runs on both."""
    return "asyncio"


async def gone() -> bool:
    """Whether nothing of this test is left, within a few seconds."""
    for _ in range(100):
        if not children():
            return True
        await anyio.sleep(0.05)
    return False


# -- what it reaches -----------------------------------------------------------------------------------


async def test_a_command_sees_its_work_folder_and_programs_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    said = await run_command(
        tmp_path, "cat mine; pwd; echo /*; ls -A /etc; id -u; hostname 2>&1 || cat /proc/sys/kernel/hostname"
    )
    lines = said.splitlines()
    assert lines[:2] == ["exit code 0", "text/work"]
    assert set(lines[2].split()) <= {
        "/bin",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/proc",
        "/sbin",
        "/tmp",
        "/usr",
        "/work",
    }
    assert set(lines[3:-2]) <= {"alternatives", "group", "ld.so.cache", "passwd"}
    assert lines[-2:] == ["1000", "sandbox"]


async def test_what_it_writes_is_in_the_work_folder_and_its_own_tmp_is_not_kept(tmp_path: Path) -> None:
    await run_command(tmp_path, "echo kept > kept; echo gone > /tmp/gone")
    assert (tmp_path / "kept").read_text() == "kept\n"
    assert "No such file" in await run_command(tmp_path, "cat /tmp/gone")
    assert not Path("/tmp/gone").exists()


async def test_no_file_of_the_host_is_there(tmp_path: Path) -> None:
    paths = "/root /home /etc/shadow /etc/hostname /var /sys /opt /run /boot /mnt /srv /.dockerenv"
    said = await run_command(tmp_path, f"for path in {paths}; do test -e $path && echo $path; done; echo none")
    assert said == "exit code 0\nnone\n"


async def test_a_link_in_the_work_folder_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    root = tmp_path / "work"
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    said = await run_command(root, "cat link; ls up/outside; echo x > link")
    assert "secret" not in said
    assert outside.read_text() == "secret"


async def test_nothing_but_the_work_folder_can_be_written(tmp_path: Path) -> None:
    paths = "/usr/x /bin/x /etc/passwd /etc/x /x /dev/x /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches"
    said = await run_command(
        tmp_path, f"for path in {paths}; do (echo x > $path) 2> /dev/null && echo $path; done; echo none"
    )
    assert said == "exit code 0\nnone\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; socket.create_connection(('1.1.1.1', 80), 2)",
        "import socket; socket.getaddrinfo('example.com', 80)",
        "import socket; socket.create_connection(('127.0.0.1', PORT), 2)",
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0' + 'locus-test')",
    ],
)
async def test_the_network_cannot_be_reached(tmp_path: Path, attempt: str) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        (tmp_path / "try.py").write_text(attempt.replace("PORT", str(port)))
        said = await run_command(tmp_path, "/usr/bin/python3 try.py || perl -v > /dev/null && echo failed")
        assert "failed" in said


_ATTEMPTS = (
    "mount -t tmpfs none /tmp",
    "mount -o remount,rw /usr",
    "umount /proc",
    "unshare -U true",
    "unshare -Ur mount -t tmpfs none /tmp",
    "unshare -m true",
    "chroot / true",
    "nsenter -t 1 -m true",
    "hostname other",
    "mknod /tmp/disk b 8 0",
    "chown 0:0 /work",
    "su -c true",
    "setpriv --inh-caps +all true",
    "kill -9 1; test ! -d /proc/1",
)


async def test_privileges_cannot_be_had(tmp_path: Path) -> None:
    lines = [f"( {attempt} ) < /dev/null > /dev/null 2>&1 && echo '{attempt}'" for attempt in _ATTEMPTS]
    assert await run_command(tmp_path, "\n".join([*lines, "echo none"])) == "exit code 0\nnone\n"


async def test_a_command_has_no_capabilities_and_gets_no_new_ones(tmp_path: Path) -> None:
    said = await run_command(tmp_path, "grep -E '^Cap|^NoNewPrivs|^Groups' /proc/self/status")
    values = dict(line.split(":\t") for line in said.splitlines()[1:])
    assert {value for name, value in values.items() if name.startswith("Cap")} == {"0" * 16}
    assert values["NoNewPrivs"] == "1"


async def test_it_sees_no_process_but_its_own_and_no_variable_but_those_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret-1")
    monkeypatch.setenv("CHOSEN", "shown")
    said = await run_command(
        tmp_path, "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat /proc/[0-9]*/cmdline", env=["CHOSEN", "NOT_SET"]
    )
    assert "secret-1" not in said
    assert "CHOSEN=shown" in said
    assert str(tmp_path) not in said.replace("OLDPWD", "") or "launcher.py" in said
    assert "pytest" not in said.replace(str(tmp_path), "")


async def test_the_variables_of_a_command_are_in_no_argument_which_every_user_of_the_machine_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHOSEN", "secret-\u00e9\udcff")
    said = await run_command(tmp_path, "cat /proc/[0-9]*/cmdline; printf '\\n%s' \"$CHOSEN\" | od -c", env=["CHOSEN"])
    assert "launcher.py" in said
    assert "secret" not in said.replace("s   e   c   r   e   t", "found")
    assert r"s   e   c   r   e   t   - 303 251 377" in said


# -- limits --------------------------------------------------------------------------------------------

_EAT = """
import time
x = bytearray({size})
x[::4096] = b'x' * len(x[::4096])
print("had", "it", flush=True)
time.sleep({nap})
"""


def _python() -> str:
    """A Python that is visible in the sandbox."""
    found = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    assert found is not None, "these tests need /usr/bin/python3"
    return found


async def test_a_process_gets_no_more_than_its_memory(tmp_path: Path) -> None:
    (tmp_path / "eat.py").write_text(_EAT.format(size=2_000_000_000, nap=0))
    said = await run_command(tmp_path, f"{_python()} eat.py")
    assert "MemoryError" in said
    assert "had it" not in said


async def test_all_processes_together_get_no_more_than_that(tmp_path: Path) -> None:
    (tmp_path / "eat.py").write_text(_EAT.format(size=60_000_000, nap=30))
    said = await run_command(tmp_path, f"for i in 1 2 3 4; do {_python()} eat.py & done; wait", memory=200_000_000)
    assert said.startswith("stopped: all processes together used more than 200,000,000 bytes of memory")


async def test_a_file_can_have_64_mb_and_no_more(tmp_path: Path) -> None:
    said = await run_command(tmp_path, "head -c 100000000 /dev/zero > big")
    assert "File too large" in said or "signal 25" in said
    assert (tmp_path / "big").stat().st_size == 64_000_000


async def test_what_is_in_memory_files_is_limited(tmp_path: Path) -> None:
    said = await run_command(tmp_path, "head -c 50000000 /dev/zero > /tmp/big", memory=100_000_000)
    assert "No space left on device" in said


_BOMB = "bomb() { bomb | bomb & }; bomb; sleep 20"


async def test_a_fork_bomb_is_stopped(tmp_path: Path) -> None:
    began = time.monotonic()
    said = await run_command(tmp_path, _BOMB, timeout=15)
    # Root has no limit of processes, so those of its sandbox are counted; others run into the limit of the kernel.
    assert said.startswith("stopped: there were more than 64 processes") or "fork" in said.lower()
    assert time.monotonic() - began < 60
    assert "exit code 0" in await run_command(tmp_path, "true")


async def test_a_flood_is_cut_in_the_middle(tmp_path: Path) -> None:
    said = await run_command(tmp_path, "echo begin; head -c 3000000 /dev/zero | tr '\\0' y; echo end")
    assert len(said) < 101_000
    assert said.startswith("exit code 0\nbegin\nyyy")
    assert said.endswith("yyyend\n")
    assert "[... 2,900,010 bytes of the output are left out here ...]" in said


async def test_an_endless_flood_ends_with_its_time(tmp_path: Path) -> None:
    said = await run_command(tmp_path, "yes", timeout=3)
    assert said.startswith("stopped after 3 s: the time was up\ny\n")
    assert len(said) < 101_000


async def test_bytes_that_are_not_text_are_replaced(tmp_path: Path) -> None:
    assert await run_command(tmp_path, r"printf '\377\376 \303\244'") == "exit code 0\n\ufffd\ufffd ä"


# -- what is left --------------------------------------------------------------------------------------


async def test_a_daemon_that_is_left_behind_is_stopped(tmp_path: Path) -> None:
    mark = MARK.decode()
    said = await run_command(
        tmp_path, f"setsid sleep {mark} & (sleep {mark} &) ; nohup sleep {mark} > /dev/null & echo begun"
    )
    assert said == "exit code 0\nbegun\n"
    assert await gone()


async def test_what_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    mark = MARK.decode()
    said = await run_command(
        tmp_path, f"trap '' TERM INT HUP; setsid sleep {mark} & echo begun; sleep {mark}", timeout=3
    )
    assert said == "stopped after 3 s: the time was up\nbegun\n"
    assert await gone()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "exit code 0"),
        ("exit 7", "exit code 7"),
        ("kill -9 $$", "killed by signal 9"),
        ("kill -SEGV $$", "killed by signal 11"),
        ("no-such-program", "exit code 127\nsh: 1: no-such-program: not found\n"),
        ("echo out; echo err >&2", "exit code 0\nout\nerr\n"),
        ("cat", "exit code 0"),
        ("exit 255", "exit code 255"),
    ],
)
async def test_how_a_command_ended_is_said(tmp_path: Path, command: str, said: str) -> None:
    assert await run_command(tmp_path, command) == said


#: Runs a command and is killed in the middle of it.
_PROGRAM = """
import sys
import anyio
from pathlib import Path
from locus_plugin_shell import Sandbox, ShellSettings

root, mark = Path(sys.argv[1]), sys.argv[2]
anyio.run(Sandbox(ShellSettings(root=str(root)), root).run, f"setsid sleep {mark} & touch began; sleep {mark}", 600.0)
"""


async def test_a_program_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    running = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path), MARK.decode()])
    try:
        for _ in range(600):
            if (tmp_path / "began").exists() and len(children()) >= 3:
                break
            await anyio.sleep(0.05)
        assert len(children()) >= 3
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert await gone()


async def test_a_launcher_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_run_ignoring_failure, tmp_path)
        while not (tmp_path / "began").exists():
            await anyio.sleep(0.05)
        # The init of the namespace has the same arguments, and was started later.
        launchers = [pid for pid in children() if b"launcher" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(min(launchers), signal.SIGKILL)
    assert await gone()


async def _run_ignoring_failure(root: Path) -> None:
    with pytest.raises(RuntimeError, match="the launcher was killed"):
        await sandbox(root).run(f"touch began; sleep {MARK.decode()}", 600.0)


# -- where it cannot be had ----------------------------------------------------------------------------


def test_without_namespaces_the_agent_is_not_built_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's own refusal: a limit of namespaces that another user namespace sets for what is below it."""
    program = (
        "from locus.core.errors import ConfigError\nfrom locus_plugin_shell import ShellHook, ShellSettings\n"
        "import sys\ntry:\n    ShellHook(ShellSettings(root=sys.argv[1]))\nexcept ConfigError as e:\n    print(e)\n"
    )
    inside = f'echo 0 > /proc/sys/user/max_user_namespaces && exec {sys.executable} -c "$0" "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", inside, program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(
        "shell: commands cannot run in a sandbox here: unshare of user, mount, pid, net, ipc and uts: "
    ), done
    assert "unsafe_host=True" in done.stdout


def test_another_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ConfigError, match="needs Linux, got darwin"):
        ShellHook(ShellSettings(root=str(tmp_path)))


async def test_a_command_is_not_begun_where_the_sandbox_can_no_longer_be_built(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    made = sandbox(root)
    root.rmdir()
    with pytest.raises(RuntimeError, match=r"the sandbox could not be built: .*No such file"):
        await made.run("touch began", 5.0)


@pytest.mark.parametrize("root", ["/", "~", "~/..", "~/../.."])
def test_the_whole_machine_and_what_holds_the_home_are_refused_as_work_folder(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="root must be a folder for the agent's work"):
        ShellHook(ShellSettings(root=root))


# -- for others than root ------------------------------------------------------------------------------


async def test_a_user_without_privileges_has_the_same_sandbox() -> None:
    """As nobody where the tests run as root; other users have no privileges to begin with."""
    folder = Path(tempfile.mkdtemp())
    try:
        launcher = shutil.copy(launcher_module.__file__, folder)
        work = folder / "work"
        work.mkdir()
        for path in (folder, work):
            path.chmod(0o777)
        user = 65534 if os.geteuid() == 0 else None
        wanted = {
            "command": f"id -u; touch mine; ls /root /home; unshare -U true; {_BOMB}",
            "work": str(work),
            "memory": 1_000_000_000,
            "file_size": 64_000_000,
            "processes": 32,
            "scratch": 1_000_000,
        }
        with subprocess.Popen(
            [_python(), "-I", "-S", launcher, json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
            user=user,
            extra_groups=None if user is None else [],
        ) as process:
            assert process.stdout is not None
            said = b"".join(process.stdout.readline() for _ in range(4)).decode()
            process.kill()
        assert said.startswith("1000\n")
        assert (work / "mine").stat().st_uid == (os.geteuid() if user is None else user)
        assert "unshare failed" in said
    finally:
        shutil.rmtree(folder)
