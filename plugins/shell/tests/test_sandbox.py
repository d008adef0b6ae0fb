"""What a command in the sandbox can reach, and what stops it: with the namespaces of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import pytest

from locus_plugin_shell import launcher as launcher_module

from . import kit
from .kit import MARK, children, gone, run_command, sandbox

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("way")]


@pytest.fixture
def anyio_backend() -> str:
    """What is shown here is the kernel's; `test_execute.py` runs on both."""
    return "asyncio"


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
    # The init that the plugin makes by itself has the launcher's arguments.
    assert (str(tmp_path) in said) == (kit.way == "unshare")
    assert "pytest" not in said.replace(str(tmp_path), "")


async def test_the_variables_of_a_command_are_in_no_argument_which_every_user_of_the_machine_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHOSEN", "secret-\u00e9\udcff")
    said = await run_command(tmp_path, "cat /proc/[0-9]*/cmdline; printf '\\n%s' \"$CHOSEN\" | od -c", env=["CHOSEN"])
    assert ("launcher.py" if kit.way == "unshare" else "/bwrap") in said
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
    # The shell may become the command, and says nothing then.
    assert "File size limit exceeded" in said or said in ("killed by signal 25", "exit code 153")
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


@pytest.mark.parametrize("character", ["e", "\u00e9", "'", "\n"])
async def test_a_command_may_have_100_000_bytes_whatever_they_are(tmp_path: Path, character: str) -> None:
    text = character * ((100_000 - len(": <<'END'\n\nEND\n")) // len(character.encode()))
    assert await run_command(tmp_path, f": <<'END'\n{text}\nEND\n") == "exit code 0"


async def test_what_writes_to_a_closed_pipe_ends_without_a_word(tmp_path: Path) -> None:
    assert await run_command(tmp_path, "yes | head -n 1; seq 1000000 | sed 1q") == "exit code 0\ny\n1\n"


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
    if kit.way == "bwrap":  # which does not tell a signal from the exit code that a shell makes of it
        said = re.sub(r"killed by signal (\d+)", lambda found: f"exit code {128 + int(found[1])}", said)
    assert await run_command(tmp_path, command) == said


async def test_a_descriptor_of_the_launcher_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "list.py").write_text("import os; print(sorted(os.listdir('/proc/self/fd')))")
    # The last one is that of the listing.
    assert await run_command(tmp_path, f"{_python()} list.py") == "exit code 0\n['0', '1', '2', '3']\n"
    said = await run_command(tmp_path, "readlink /proc/1/fd/* | sed 's/[0-9]*//g' | sort -u")
    # Of the init that the plugin makes by itself nothing can be seen.
    assert said == ("exit code 0\nanon_inode:[eventfd]\npipe:[]\n" if kit.way == "bwrap" else "exit code 0")


async def test_the_init_that_a_command_can_trace_is_of_no_use_to_it(tmp_path: Path) -> None:
    """What it can reach through the init are pipes that nobody reads, the same limits, and the same files."""
    if kit.way == "unshare":
        said = await run_command(tmp_path, "cat /proc/1/limits > /dev/null; cd /proc/1; ls root/ cwd/")
        assert "Permission denied" in said
        return
    said = await run_command(
        tmp_path,
        "echo noise > /proc/1/fd/2; echo noise > /proc/1/fd/0; ls /proc/1/cwd/ | grep -c '^home$'; "
        "grep -E '^Max (processes|file size|address)' /proc/1/limits; "
        "grep Cap /proc/1/status | grep -vc 0000000000000000",
    )
    numbers = [line.split()[-3:-1] for line in said.splitlines() if line.startswith("Max")]
    assert numbers == [["64000000"] * 2, ["64"] * 2, ["1000000000"] * 2]
    assert said.splitlines()[1] == "0"
    assert said.splitlines()[-1] == "0"


#: Runs a command and is killed in the middle of it.
_PROGRAM = """
import sys
import anyio
from pathlib import Path
from locus_plugin_shell import Sandbox, ShellSettings

root, mark, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
made = Sandbox.find(ShellSettings(root=str(root), sandbox=way), root)
anyio.run(made.run, f"setsid sleep {mark} & touch began; sleep {mark}", 600.0)
"""


async def test_a_program_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    running = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path), MARK.decode(), kit.way])
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


#: Is killed while its guard watches a process that nothing else would end.
_GUARDED = """
import os, subprocess
from locus_plugin_shell import bwrap

running = subprocess.Popen(["sleep", os.environ["MARK"]], start_new_session=True, stdout=subprocess.DEVNULL)
bwrap._start_guard(os.pidfd_open(running.pid))
print(running.pid, flush=True)
os.kill(os.getpid(), 9)
"""


async def test_a_guard_kills_what_a_killed_launcher_leaves() -> None:
    """An init that the command has changed does not end with the launcher by itself."""
    done = subprocess.run(
        [sys.executable, "-c", _GUARDED], env={**os.environ, "MARK": MARK.decode()}, capture_output=True, check=False
    )
    assert done.stdout, done.stderr
    assert await gone()


# -- for others than root ------------------------------------------------------------------------------


def test_a_command_that_cannot_begin_is_reported_as_such(tmp_path: Path) -> None:
    wanted = {
        "work": str(tmp_path),
        "memory": 10**9,
        "file_size": "many",
        "processes": 2,
        "scratch": 10**6,
        "bwrap": None,
    }
    with subprocess.Popen(
        [_python(), "-I", "-S", launcher_module.__file__, json.dumps(wanted), "touch began"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        output, report = _end(process)
    assert (output, (tmp_path / "began").exists()) == (b"", False)
    assert json.loads(report)["failed"].startswith("start the command: ")


async def test_a_user_without_privileges_has_the_same_sandbox(bwrap: Path) -> None:
    """As nobody where the tests run as root; other users have no privileges to begin with."""
    folder = Path(tempfile.mkdtemp())
    try:
        for name in ("launcher", "bounds", "bwrap", "unshare"):
            shutil.copy(Path(launcher_module.__file__).with_name(f"{name}.py"), folder)
        # With the library that it brings, at the same place beside it.
        for place in (bwrap.parent, bwrap.parent.parent.with_suffix(".libs")):
            shutil.copytree(place, folder / place.relative_to(bwrap.parent.parent.parent))
        work = folder / "work"
        work.mkdir()
        for path in (folder, work):
            path.chmod(0o777)
        user = 65534 if os.geteuid() == 0 else None
        command = (
            f"id -u; touch mine; grep -o 'processes  *32' /proc/self/limits; ls /root /home; unshare -U true; {_BOMB}"
        )
        wanted = {
            "work": str(work),
            "memory": 1_000_000_000,
            "file_size": 64_000_000,
            "processes": 32,
            "scratch": 1_000_000,
            "bwrap": str(folder / bwrap.relative_to(bwrap.parent.parent.parent)) if kit.way == "bwrap" else None,
        }

        def start(command: str, **changed: object) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [_python(), "-I", "-S", str(folder / "launcher.py"), json.dumps({**wanted, **changed}), command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin"},
                user=user,
                extra_groups=None if user is None else [],
            )

        with start(command) as process:
            assert process.stdout is not None
            said = b"".join(process.stdout.readline() for _ in range(5)).decode()
            process.kill()
        assert said.startswith("1000\nprocesses")
        assert (work / "mine").stat().st_uid == (os.geteuid() if user is None else user)
        assert "unshare failed" in said
        # All processes together, which nobody but the launcher counts.
        (work / "eat.py").write_text(_EAT.format(size=60_000_000, nap=30))
        with start(f"for i in 1 2 3 4; do {_python()} eat.py & done; wait", memory=200_000_000) as process:
            _, report = await anyio.to_thread.run_sync(_end, process)
        assert json.loads(report) == {"excess": "memory"}
    finally:
        shutil.rmtree(folder)


def _end(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What it writes to its end, while its standard input stays open."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.read(), process.stderr.read()
