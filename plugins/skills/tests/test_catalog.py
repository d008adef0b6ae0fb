"""Which folders are skills, what is wrong with the others, and what can be read of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_plugin_skills import BadSkill, Skill, SkillCatalog, parse_skill

from .kit import add_skill


def catalog(*folders: Path, most: int = 100) -> SkillCatalog:
    return SkillCatalog.of([str(folder) for folder in folders], most)


# -- front matter --------------------------------------------------------------------------------------


def test_a_skill_has_a_name_a_description_and_instructions() -> None:
    text = "---\nname: pdf-forms\ndescription: >\n  Fill in\n  forms.\nlicense: MIT\n---\n\n# How\n\n---\nGo.\n"
    skill, rest = parse_skill(text, Path("skills/pdf-forms"))
    assert skill == Skill("pdf-forms", "Fill in forms.", Path("skills/pdf-forms"))
    assert rest == "# How\n\n---\nGo."


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("name: x\ndescription: &a [*a, *a]", "alias"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nname: x\ndescription: d", "alias"),
        ("<<: *x\nname: x", "alias"),
        ("name: x\ndescription: !!python/object/apply:os.system ['true']", "not YAML: could not determine"),
        ("name: x\ndescription: !!python/name:os.system", "not YAML"),
        ("name: [", "not YAML"),
        ("- name", "must be a mapping"),
        ("text", "must be a mapping"),
        ("name: x", "description must be a text, got None"),
        ("name: x\ndescription: 3", "description must be a text, got 3"),
        ("name: x\ndescription: '  '", "description must be a text"),
        (f"name: x\ndescription: {'d' * 1_025}", "at most 1,024 characters, got 1,025"),
        ("description: d", "name must be at most 64 .*, got None"),
        ("name: X\ndescription: d", "got 'X'"),
        ("name: ../x\ndescription: d", "got '../x'"),
        ("name: a--b\ndescription: d", "got 'a--b'"),
        ("name: 'x\n'\ndescription: d", "name must be that of its folder|got "),
        (f"name: {'x' * 65}\ndescription: d", "name must be at most 64"),
        ("name: y\ndescription: d", "name must be that of its folder, 'x', got 'y'"),
        ("name: x\ndate: 2024-99-99\ndescription: d", "not YAML"),
        ("name: x\ndescription: !!bool maybe", "not YAML: expected a value of the kind bool, got 'maybe' .* line 2,"),
        ("name: x\ndescription: !!int ''", "not YAML: expected a value of the kind int, got ''"),
        ("name: x\ndescription: !!float ''", "not YAML: expected a value of the kind float, got ''"),
        ("name: x\ndescription: !!timestamp x", "not YAML: expected a value of the kind timestamp, got 'x'"),
        ("name: x\ndescription: d\nwhen: [1, {at: !!timestamp x}]", "kind timestamp, got 'x' .* line 3, column 16"),
        ("name: x\ndescription: d\nsize: !!int 0b_", "kind int, got '0b_'"),
        ("name: x\ndescription: d\nsize: !!int 1:x", "kind int, got '1:x'"),
        ("[" * 5_000, "not YAML"),
    ],
)
def test_what_is_wrong_with_a_skill_is_said(front: str, why: str) -> None:
    with pytest.raises(BadSkill, match=why):
        parse_skill(f"---\n{front}\n---\ntext", Path("x"))


@given(
    st.sampled_from(
        ["bool", "int", "float", "timestamp", "binary", "null", "str", "seq", "map", "set", "omap", "pairs"]
    ),
    st.sampled_from(["", "'", '"', "|\n  ", "[", "{", "? "]),
    st.text(alphabet="0123456789abexTZ_.:+- \n'\"]}~=<", max_size=20),
)
def test_no_tag_is_more_than_a_bad_skill(tag: str, opening: str, text: str) -> None:
    with contextlib.suppress(BadSkill):
        parse_skill(f"---\nname: x\ndescription: d\nmore: !!{tag} {opening}{text}\n---\n", Path("x"))


@pytest.mark.parametrize("text", ["", "no front matter", "---\nname: x\ndescription: d\n", " ---\nname: x\n---\n"])
def test_front_matter_is_needed(text: str) -> None:
    with pytest.raises(BadSkill, match="must begin with front matter"):
        parse_skill(text, Path("x"))


@given(st.text(alphabet="-\n :&*!{}[]#'\"%@`|>namedscription\t", max_size=200))
def test_whatever_a_file_says_it_is_a_skill_or_a_bad_one(text: str) -> None:
    with contextlib.suppress(BadSkill):
        skill, _ = parse_skill(text, Path("x"))
        assert skill.name == "x"


def test_a_description_is_one_line_without_what_cannot_be_seen() -> None:
    skill, _ = parse_skill('---\nname: x\ndescription: "a\\nb\\u202e\\x1b  c"\n---', Path("x"))
    assert skill.description == "a b c"


# -- folders -------------------------------------------------------------------------------------------


def test_skills_of_all_folders_are_found_and_the_later_folder_counts(tmp_path: Path) -> None:
    add_skill(tmp_path / "one", "review", "Old.")
    add_skill(tmp_path / "one", "deploy")
    add_skill(tmp_path / "two", "review", "New.")
    found = catalog(tmp_path / "one", tmp_path / "missing", tmp_path / "two")
    assert [(skill.name, skill.description) for skill in found.skills.values()] == [
        ("deploy", "How to deploy."),
        ("review", "New."),
    ]
    assert found.problems == ()


def test_bad_skills_are_named_and_the_others_are_used(tmp_path: Path) -> None:
    add_skill(tmp_path, "good")
    (add_skill(tmp_path, "big") / "SKILL.md").write_bytes(b"x" * 64_001)
    (add_skill(tmp_path, "binary") / "SKILL.md").write_bytes(b"\xff")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    outside = add_skill(tmp_path.parent / f"{tmp_path.name}-outside", "linked")
    (tmp_path / "linked").symlink_to(outside)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (tmp_path / "Bad Name").mkdir()
    (tmp_path / "Bad Name" / "SKILL.md").write_text("---\nname: Bad Name\ndescription: d\n---\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("no skill")
    add_skill(tmp_path, "tagged", "!!bool maybe")
    found = catalog(tmp_path)
    assert list(found.skills) == ["good"]
    assert [problem.split(": ")[0] for problem in found.problems] == [
        "Bad Name",
        "big",
        "binary",
        "half",
        "linked",
        "pipe",
        "tagged",
    ]
    assert "more than 64,000 bytes" in found.problems[1]


def test_only_so_many_skills_are_used_and_the_rest_is_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        add_skill(tmp_path, name)
    found = catalog(tmp_path, most=2)
    assert list(found.skills) == ["a", "b"]
    assert found.problems == ("c: only 2 skills are used",)


# -- reading -------------------------------------------------------------------------------------------


def test_the_instructions_come_with_a_list_of_the_other_files(tmp_path: Path) -> None:
    folder = add_skill(
        tmp_path, "review", text="Read it.", rules_dot_md="Rules.", scripts__run_dot_py="print()", _hidden="x"
    )
    (folder / ".secret").write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    assert catalog(tmp_path).read("review") == (
        "Read it.\n\nOther files of this skill, for read_skill(name, file):\n- _hidden\n- rules.md\n- scripts/run.py"
    )
    assert catalog(tmp_path).read("review", "scripts/run.py") == "print()"


def test_a_skill_alone_is_its_text(tmp_path: Path) -> None:
    add_skill(tmp_path, "review", text="Read it.")
    assert catalog(tmp_path).read("review") == "Read it."


def test_a_list_of_files_is_limited(tmp_path: Path) -> None:
    folder = add_skill(tmp_path, "review")
    for number in range(120):
        (folder / f"{number:03}.md").touch()
    said = catalog(tmp_path).read("review")
    assert said.count("\n- ") == 100
    assert said.endswith("- 099.md\n(only the first 100 are listed)")


@pytest.mark.parametrize(
    "file",
    [
        "../secret",
        "/etc/passwd",
        "a/../../secret",
        "",
        ".",
        "..",
        "link",
        "folder/secret",
        "pipe",
        "big",
        "none.md",
        "a\0b",
        "x" * 300,
        "rules.md/x",
    ],
)
def test_no_other_file_can_be_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "skills"
    folder = add_skill(root, "review", rules_dot_md="Rules.")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "big").write_bytes(b"x" * 64_001)
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match="skill 'review': ") as e:
        catalog(root).read("review", file)
    assert "secret" not in str(e.value).replace(repr(file), "")


def test_a_skill_folder_that_becomes_a_link_leads_nowhere(tmp_path: Path) -> None:
    root, outside = tmp_path / "skills", tmp_path / "outside"
    folder = add_skill(root, "review", rules_dot_md="Rules.")
    found = catalog(root)
    folder.rename(outside)
    (outside / "rules.md").write_text("secret")
    folder.symlink_to(outside)
    with pytest.raises(ValueError, match="cannot be read"):
        found.read("review", "rules.md")
    with pytest.raises(ValueError, match="cannot be read"):
        found.read("review")


def test_an_unknown_skill_or_file_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    add_skill(tmp_path, "review", rules_dot_md="Rules.")
    with pytest.raises(ValueError, match=r"unknown skill 'reviev'; did you mean 'review'.; known: review"):
        catalog(tmp_path).read("reviev")
    with pytest.raises(ValueError, match=r"does not exist; did you mean 'rules.md'.; known: rules.md"):
        catalog(tmp_path).read("review", "rule.md")
