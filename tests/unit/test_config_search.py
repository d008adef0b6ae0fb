"""Where a configuration is looked for: no further than the user's own folders, and never where others can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from locus.config import ConfigFile, find_config, load_config, read_file, search_folders
from locus.core.errors import ConfigError

TEXT = "[agent]\nmax_iterations = 3\n"


def written(folder: Path, name: str = "locus.toml", text: str = TEXT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home folder, in a folder that has a configuration as well."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize("mark", [".git", ".hg", ".jj"])
def test_the_search_ends_at_the_root_of_the_repository(tmp_path: Path, mark: str) -> None:
    written(tmp_path)
    (tmp_path / "repo" / mark).mkdir(parents=True)
    below = tmp_path / "repo" / "a"
    below.mkdir()

    assert find_config(below) is None

    own = written(tmp_path / "repo")
    assert load_config(find_config(below), environ={}).source == str(own)


def test_a_worktree_whose_mark_is_a_file_is_a_repository_too(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path / "repo", ".git", "gitdir: elsewhere\n")

    assert find_config(tmp_path / "repo") is None


def test_the_search_ends_at_home(tmp_path: Path, home: Path) -> None:
    written(tmp_path)
    (home / "a" / "b").mkdir(parents=True)

    assert find_config(home / "a" / "b") is None

    own = written(home)
    found = find_config(home / "a" / "b")
    assert found is not None
    assert found.source == str(own)


def test_the_search_ends_where_another_file_system_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    mounted = tmp_path / "mounted"
    (mounted / "a").mkdir(parents=True)
    real = Path.stat

    def stat(self: Path, **how: bool) -> os.stat_result:
        found = real(self, **how)
        if self != mounted and mounted not in self.parents:
            return found
        fields = [*found]
        fields[2] += 1  # st_dev
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "stat", stat)

    assert [folder for folder, _ in search_folders(mounted / "a")] == [mounted / "a", mounted]
    assert find_config(mounted / "a") is None


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703])
def test_a_folder_that_others_can_write_to_is_passed_over(tmp_path: Path, mode: int) -> None:
    above = written(tmp_path)
    shared = tmp_path / "shared"
    written(shared, text="not TOML at all")
    written(shared, "pyproject.toml", "nor this")
    shared.chmod(mode)

    found = find_config(shared)

    assert found is not None
    assert found.source == str(above)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    other = tmp_path / "other"
    written(other)
    os.chown(other, 12345, 12345)

    assert find_config(other) is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(("group", "found"), [(12345, False), (0, True)])
def test_a_group_that_may_write_counts_as_others_unless_it_is_the_users_own(
    tmp_path: Path, group: int, found: bool
) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "grouped"
    written(folder)
    os.chown(folder, 0, group)
    folder.chmod(0o775)

    assert (find_config(folder) is not None) is found


def test_a_file_that_is_named_is_read_wherever_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "shared")
    (tmp_path / "shared").chmod(0o777)

    assert load_config(path, environ={}).agent == {"max_iterations": 3}


def test_what_was_read_is_used_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    file = read_file(path)
    path.write_text("[agent]\nmax_iterations = 99\n")

    assert isinstance(file, ConfigFile)
    assert file.content == TEXT.encode()
    assert load_config(file, environ={}).agent == {"max_iterations": 3}


def test_of_a_pyproject_only_the_table_is_its_content(tmp_path: Path) -> None:
    text = "[project]\nname = 'x'\nversion = '{}'\n[tool.locus.agent]\nmax_iterations = {}\n"
    contents = [
        read_file(written(tmp_path, "pyproject.toml", text.format(version, n))).content
        for version, n in (("1", 3), ("2", 3), ("2", 4))
    ]

    assert contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "# " + "x" * 4_000_001])
def test_a_file_without_measure_is_an_error_and_no_crash(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"locus\.toml (is not valid TOML|has more than)"):
        load_config(written(tmp_path, text=text), environ={})
