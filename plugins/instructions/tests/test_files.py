"""Files of instructions: which are found, and what is made of them."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from locus.core.errors import ConfigError
from locus_plugin_instructions import find_agents_md, load_agents_md, prepend_instructions


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two folders in it."""
    root = tmp_path / "project"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    for folder in (tmp_path, root, root / "a", root / "a" / "b"):
        folder.chmod(0o755)
    return root


# -- load_agents_md ------------------------------------------------------------------------------------


def test_the_helpers_have_a_path_of_their_own() -> None:
    window = importlib.import_module("locus.deepagent.memory")
    assert window.load_agents_md is load_agents_md
    assert window.prepend_instructions is prepend_instructions


def test_texts_are_joined_by_a_rule_in_order(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("One.\n")
    (tmp_path / "two.md").write_text("\nTwo.\n")
    assert load_agents_md([tmp_path / "two.md", str(tmp_path / "one.md")]) == "Two.\n\n---\n\nOne."


def test_missing_and_empty_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("One.")
    (tmp_path / "empty.md").write_text(" \n")
    paths = [tmp_path / "no.md", tmp_path / "empty.md", tmp_path / "one.md", tmp_path / "one.md" / "below"]
    assert load_agents_md(paths) == "One."
    assert load_agents_md([]) == load_agents_md([tmp_path / "no.md"]) == ""


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "AGENTS.md").write_text("From home.")
    assert load_agents_md(["~/AGENTS.md"]) == "From home."


def test_the_block_goes_before_the_prompt_and_an_empty_one_changes_nothing() -> None:
    assert prepend_instructions("Block.", "Prompt.") == "Block.\n\n---\n\nPrompt."
    assert prepend_instructions("", " Prompt. ") == " Prompt. "
    assert prepend_instructions("Block.", "") == "Block."


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x" * 64_001, "more than 64,000 bytes"), (b"\xff\xfe", "not UTF-8"), (None, "not a regular file")],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "AGENTS.md"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"instructions: '.*AGENTS\.md' is not used: .*{why}"):
        load_agents_md([path])


def test_one_path_is_not_a_list_of_letters(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="must be a list of paths"):
        load_agents_md("AGENTS.md")


# -- find_agents_md ------------------------------------------------------------------------------------


def test_a_projects_files_are_found_upwards_to_the_root_of_the_repository(project: Path) -> None:
    for folder in (project.parent, project, project / "a" / "b"):
        (folder / "AGENTS.md").write_text(folder.name)
    assert find_agents_md(project / "a" / "b") == [project / "AGENTS.md", project / "a" / "b" / "AGENTS.md"]


def test_the_search_ends_at_the_home_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").rmdir()
    monkeypatch.setenv("HOME", str(project / "a"))
    for folder in (project, project / "a", project / "a" / "b"):
        (folder / "AGENTS.md").write_text("x")
    assert find_agents_md(project / "a" / "b") == [project / "a" / "AGENTS.md", project / "a" / "b" / "AGENTS.md"]


def test_of_several_names_the_first_one_counts(project: Path) -> None:
    (project / "AGENTS.md").write_text("x")
    (project / "CLAUDE.md").write_text("x")
    assert find_agents_md(project, ("CLAUDE.md", "AGENTS.md")) == [project / "CLAUDE.md"]


def test_links_folders_and_what_others_can_write_are_left_out(project: Path) -> None:
    (project / "secret").write_text("secret")
    (project / "a" / "AGENTS.md").symlink_to(project / "secret")
    (project / "AGENTS.md").mkdir()
    (project / "a" / "b" / "AGENTS.md").write_text("planted")
    (project / "a" / "b").chmod(0o777)
    assert find_agents_md(project / "a" / "b") == []
