"""`FilesystemBackend`: what it makes of links, of what is not a file, and of a disk that fails."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from locus.core.errors import ConfigError
from locus.files import BackendError
from locus_plugin_filesystem import FilesystemBackend
from locus_plugin_filesystem.descriptors import can_resolve_beneath, is_temporary, temporary_name

_SECRET = "the secret of another folder"


@pytest.fixture(params=["resolved beneath", "walked"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesystemBackend:
    if request.param == "walked":
        monkeypatch.setattr("locus_plugin_filesystem.descriptors.can_resolve_beneath", lambda: False)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(_SECRET)
    return FilesystemBackend(tmp_path / "root")


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(BackendError) as caught:
        call()
    assert "outside" not in str(caught.value)  # where things are on the machine is not for the model
    return caught.value.code


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a call of Linux")
def test_this_system_resolves_paths_beneath_a_directory() -> None:
    assert can_resolve_beneath()


def test_root_is_created_with_its_parents(tmp_path: Path) -> None:
    assert FilesystemBackend(tmp_path / "a" / "b").root == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(ConfigError, match="cannot be used"):
        FilesystemBackend(tmp_path / "f")


@pytest.mark.parametrize("target", ["../outside/secret.txt", "{}/outside/secret.txt", "../outside", "{}/outside"])
def test_link_to_outside_is_neither_read_nor_listed_nor_written(
    backend: FilesystemBackend, tmp_path: Path, target: str
) -> None:
    (backend.root / "link").symlink_to(target.format(tmp_path))
    path = "/link" if target.endswith(".txt") else "/link/secret.txt"
    assert code_of(lambda: backend.read(path)) == "permission_denied"
    assert code_of(lambda: backend.write(path, "x")) == "permission_denied"
    assert code_of(lambda: backend.edit(path, "secret", "x")) == "permission_denied"
    assert code_of(lambda: backend.write("/link/new/file", "x")) == "permission_denied"
    assert code_of(lambda: backend.ls("/link")) == "permission_denied"
    assert code_of(lambda: backend.grep("secret", path="/link")) == "permission_denied"
    assert backend.ls("/", recursive=True) == []
    assert backend.glob("**") == backend.glob("*/*") == []
    assert backend.grep("secret") == backend.grep("") == []
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["secret.txt"]
    assert (tmp_path / "outside" / "secret.txt").read_text() == _SECRET


def test_link_to_outside_may_not_lead_back_inside(backend: FilesystemBackend) -> None:
    backend.write("/a.txt", "x")
    (backend.root / "link").symlink_to(f"../{backend.root.name}/a.txt")
    assert code_of(lambda: backend.read("/link")) == "permission_denied"


def test_link_that_stays_inside_is_followed_where_the_system_resolves_it(backend: FilesystemBackend) -> None:
    backend.write("/v2/docs/a.txt", "text")
    (backend.root / "current").symlink_to("v2")
    (backend.root / "v2" / "latest.txt").symlink_to("docs/../docs/a.txt")
    if backend._root.follows_links:
        assert backend.read("/current/latest.txt") == "     1\ttext"
        assert [i.path for i in backend.ls("/current")] == ["/current/docs", "/current/latest.txt"]
        backend.write("/current/latest.txt", "new")
        backend.edit("/current/latest.txt", "new", "newer")
        assert (backend.root / "v2" / "latest.txt").is_symlink()
        assert backend.read("/v2/docs/a.txt") == "     1\tnewer"
        assert [i.path for i in backend.glob("**/*.txt")] == ["/v2/docs/a.txt", "/v2/latest.txt"]
    else:
        assert code_of(lambda: backend.read("/current/docs/a.txt")) == "permission_denied"
        assert code_of(lambda: backend.write("/v2/latest.txt", "x")) == "permission_denied"
        assert [i.path for i in backend.ls("/")] == ["/v2"]
    # What a link leads to is searched where it is, once.
    assert [match.path for match in backend.grep("new|text")] == ["/v2/docs/a.txt"]


def test_circle_of_links_ends(backend: FilesystemBackend) -> None:
    (backend.root / "a").symlink_to("b")
    (backend.root / "b").symlink_to("a")
    (backend.root / "d").mkdir()
    (backend.root / "d" / "up").symlink_to("..")
    assert code_of(lambda: backend.read("/a")) == "permission_denied"
    assert code_of(lambda: backend.write("/a", "x")) == "permission_denied"
    assert {i.path for i in backend.ls("/", recursive=True)} <= {"/d", "/d/up"}


def test_hard_link_to_outside_is_cut_by_a_write(backend: FilesystemBackend, tmp_path: Path) -> None:
    os.link(tmp_path / "outside" / "secret.txt", backend.root / "a.txt")
    backend.edit("/a.txt", "secret", "new")
    backend.write("/a.txt", "new")
    assert (tmp_path / "outside" / "secret.txt").read_text() == _SECRET
    assert backend.read("/a.txt") == "     1\tnew"


def test_what_is_not_a_file_is_refused_at_once(backend: FilesystemBackend) -> None:
    os.mkfifo(backend.root / "fifo")
    with socket.socket(socket.AF_UNIX) as served:
        previous = Path.cwd()
        os.chdir(backend.root)  # the path of a socket has room for 100 bytes
        served.bind("socket")
        os.chdir(previous)
    for path in ("/fifo", "/socket"):
        assert code_of(partial(backend.read, path)) == "permission_denied"
        assert code_of(partial(backend.write, path, "x")) == "permission_denied"
        assert code_of(partial(backend.grep, "x", path=path)) == "permission_denied"
    assert backend.ls("/") == backend.glob("*") == []
    assert backend.grep("") == []


def test_first_lines_of_a_huge_file_are_read(backend: FilesystemBackend) -> None:
    with (backend.root / "log").open("wb") as file:
        file.write("zeile ä\n".encode() * 200_000)
        file.truncate(1 << 40)  # a terabyte, nearly all of it a hole
    assert backend.read("/log", offset=150_000, limit=1) == "150001\tzeile ä"
    assert code_of(lambda: backend.read("/log", offset=300_000, limit=1)) == "too_large"
    assert code_of(lambda: backend.read("/log", limit=0)) == "too_large"
    assert code_of(lambda: backend.edit("/log", "a", "b")) == "too_large"
    assert backend.grep("zeile") == []


def test_file_that_is_not_text_says_so(backend: FilesystemBackend) -> None:
    (backend.root / "a.bin").write_bytes(b"\xff\xfe\xfa\n")
    assert code_of(lambda: backend.read("/a.bin")) == "not_text"
    assert code_of(lambda: backend.edit("/a.bin", "a", "b")) == "not_text"


def test_mode_of_a_file_is_kept(backend: FilesystemBackend) -> None:
    backend.write("/run.sh", "one")
    (backend.root / "run.sh").chmod(0o750)
    backend.edit("/run.sh", "one", "two")
    assert (backend.root / "run.sh").stat().st_mode & 0o7777 == 0o750
    (backend.root / "run.sh").chmod(0o440)
    assert code_of(lambda: backend.write("/run.sh", "x")) == "permission_denied"
    assert backend.read("/run.sh") == "     1\ttwo"


def test_decomposed_and_impossible_names_on_the_disk(backend: FilesystemBackend) -> None:
    (backend.root / unicodedata.normalize("NFD", "größe.txt")).write_text("x")
    for name in (b"\xff.txt", b"two\nlines", b"tab\t"):
        (backend.root / os.fsdecode(name)).write_text("x")
    assert [i.path for i in backend.ls("/")] == ["/größe.txt"]
    assert backend.read("/größe.txt") == "     1\tx"
    assert [match.path for match in backend.grep("x")] == ["/größe.txt"]


def decomposed(path: str) -> str:
    return unicodedata.normalize("NFD", path)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_file_with_a_decomposed_name_is_written_where_it_is_read(backend: FilesystemBackend) -> None:
    (backend.root / decomposed("café.txt")).write_text("one\ntwo\n")

    backend.edit("/café.txt", "one", "1")
    assert backend.read("/café.txt") == "     1\t1\n     2\ttwo"
    backend.write("/café.txt", "new\n")
    assert names(backend.root) == [decomposed("café.txt")]
    assert backend.read("/café.txt") == "     1\tnew"
    assert (backend.root / decomposed("café.txt")).read_text() == "new\n"


@pytest.mark.parametrize("name", ["b.txt", "é.txt", decomposed("é.txt")])
def test_a_folder_with_a_decomposed_name_is_written_in_where_it_is_read(backend: FilesystemBackend, name: str) -> None:
    folder = backend.root / decomposed("Übung") / decomposed("à")
    folder.mkdir(parents=True)
    (folder / name).write_text("one\n")
    path = f"/Übung/à/{unicodedata.normalize('NFC', name)}"

    backend.edit(path, "one", "two")
    assert backend.read(path) == "     1\ttwo"
    backend.write(path, "three\n")
    assert (names(folder), backend.read(path)) == ([name], "     1\tthree")
    backend.write("/Übung/ö/é.txt", "four")
    assert backend.read("/Übung/ö/é.txt") == "     1\tfour"
    assert names(backend.root) == [decomposed("Übung")]
    assert [each.path for each in backend.glob("**/*.txt")] == sorted([path, "/Übung/ö/é.txt"])
    assert [each.path for each in backend.grep("three", "/Übung/à")] == [path]


def test_of_two_forms_of_a_name_the_composed_one_is_meant(backend: FilesystemBackend) -> None:
    for name in ("é", decomposed("é")):
        (backend.root / f"{name}.txt").write_text(f"{len(name)}")
        (backend.root / name).mkdir()
        (backend.root / name / f"in{len(name)}").write_text("x")

    backend.edit("/é.txt", "1", "3")
    backend.write("/é/new", "x")
    assert backend.read("/é.txt") == "     1\t3"
    assert (backend.root / f"{decomposed('é')}.txt").read_text() == "2"
    assert names(backend.root / "é") == ["in1", "new"]
    assert [each.path for each in backend.ls("/", recursive=True)] == ["/é", "/é.txt", "/é/in1", "/é/new"]
    assert [each.path for each in backend.grep(".")] == ["/é.txt", "/é/in1", "/é/new"]
    assert code_of(lambda: backend.read("/é/in2")) == "file_not_found"


def test_a_link_with_a_decomposed_name_is_followed_by_a_write_as_by_a_read(backend: FilesystemBackend) -> None:
    (backend.root / "a").write_text("one")
    (backend.root / decomposed("é")).symlink_to("a")

    if not backend._root.follows_links:
        refused = code_of(lambda: backend.read("/é"))
        assert refused == code_of(lambda: backend.write("/é", "two"))
        assert (backend.root / "a").read_text() == "one"
        return
    backend.write("/é", "two")
    assert (backend.root / "a").read_text() == "two"
    assert names(backend.root) == ["a", decomposed("é")]


def test_tree_deeper_than_a_path_is_listed_as_far_as_paths_go(backend: FilesystemBackend) -> None:
    previous = Path.cwd()
    os.chdir(backend.root)
    try:
        for _ in range(30):
            Path("d" * 200).mkdir()
            os.chdir("d" * 200)
    finally:
        os.chdir(previous)
    listed = backend.ls("/", recursive=True)
    assert 15 < len(listed) < 30
    assert backend.glob("**") == []
    assert backend.grep("x") == []


def test_unfinished_writes_are_not_shown(backend: FilesystemBackend) -> None:
    name = temporary_name()
    assert is_temporary(name)
    (backend.root / name).write_text("half")
    assert backend.ls("/") == backend.glob("**") == backend.glob(".*") == []
    assert backend.grep("half") == []


def test_closed_backend_says_so(backend: FilesystemBackend) -> None:
    backend.close()
    backend.close()
    assert code_of(lambda: backend.read("/a")) == "permission_denied"


def test_time_of_a_search_is_bounded(backend: FilesystemBackend) -> None:
    backend.write("/a.txt", "x")
    assert code_of(lambda: backend.glob("**", timeout_s=-1)) == "timeout"
    assert code_of(lambda: backend.grep("x", timeout_s=-1)) == "timeout"
    assert code_of(lambda: backend.ls("/", timeout_s=-1)) == "timeout"


_FULL = """
import resource, signal, sys
from locus.files import BackendError
from locus_plugin_filesystem import FilesystemBackend
backend = FilesystemBackend(sys.argv[1])
backend.write("/a.txt", "old")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for change in (lambda: backend.write("/a.txt", "x" * 5000), lambda: backend.edit("/a.txt", "old", "y" * 5000)):
    try:
        change()
    except BackendError as e:
        print(e)
"""


def test_disk_that_takes_no_more_keeps_the_old_content(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.findall(r"permission_denied: /a.txt: files may not become that large here", done.stdout) != []
    assert done.stdout.count("permission_denied") == 2
    assert [each.name for each in (tmp_path).iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


_WRITER = """
import sys
from locus_plugin_filesystem import FilesystemBackend
backend = FilesystemBackend(sys.argv[1])
n = 0
while True:
    n += 1
    backend.write("/a.txt", f"{n % 10}" * 200_000)
    print(n, flush=True)
"""


def test_write_that_is_killed_leaves_the_old_content_or_the_new(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            for _ in range(5):
                running.stdout.readline()
            running.send_signal(signal.SIGKILL)
            running.wait()
        text = (tmp_path / "a.txt").read_text()
        assert (len(text), len(set(text))) == (200_000, 1)
        assert [i.path for i in backend.ls("/")] == ["/a.txt"]


_EDITOR = """
import sys
from locus_plugin_filesystem import FilesystemBackend
backend = FilesystemBackend(sys.argv[1])
for n in range(8):
    backend.edit("/a.txt", f"<{sys.argv[2]}.{n}>", "done")
"""


def test_edits_of_processes_are_all_kept(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    backend.write("/a.txt", "".join(f"<{part}.{n}>\n" for part in range(3) for n in range(8)))
    running = [subprocess.Popen([sys.executable, "-c", _EDITOR, str(tmp_path), str(part)]) for part in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert backend.read("/a.txt", limit=0).count("done") == 24


def test_file_that_another_program_replaces_meanwhile_is_a_conflict(
    backend: FilesystemBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.write("/a.txt", "one")

    def interfere(text: str, old: str, new: str, path: str) -> str:
        (backend.root / "a.txt").write_text("of another program")
        return text.replace(old, new)

    monkeypatch.setattr("locus_plugin_filesystem.directory.replace_once", interfere)
    assert code_of(lambda: backend.edit("/a.txt", "one", "two")) == "conflict"
    assert backend.read("/a.txt") == "     1\tof another program"
    assert [each.name for each in (backend.root).iterdir()] == ["a.txt"]
