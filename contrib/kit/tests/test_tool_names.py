"""Names of tools in settings: what is refused, and what may be missing."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from locus import tool
from locus.core.errors import UnknownName
from locus.tools import ToolRegistry
from locus_kit.tool_names import add_child_tools, check_tool_names, find_child_tools, make_optional


@tool(effect="pure")
def write_file(path: str) -> str:
    """Write a file."""
    return path


@tool(effect="pure")
def delegate(work: str) -> str:
    """Start a child run."""
    return work


@pytest.mark.parametrize("names", [None, (), ("write_file",), ("write_file", "wirte_*"), ("nothing?",), ("[x]",)])
def test_names_of_tools_and_patterns_pass(names: tuple[str, ...] | None) -> None:
    check_tool_names(names, ToolRegistry(write_file), "approval.tools")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wirte_file", "unknown tool in approval.tools 'wirte_file'; did you mean 'write_file'? (a pattern"),
        ("purge", "unknown tool in approval.tools 'purge'; known: write_file; (a pattern"),
        ("Write_File", "did you mean 'write_file'?"),
        ("", "unknown tool in approval.tools ''"),
    ],
)
def test_a_name_of_no_tool_is_refused_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UnknownName) as caught:
        check_tool_names(["write_file", name], ToolRegistry(write_file), "approval.tools")

    assert said in str(caught.value)
    assert f"{name}*" in str(caught.value)


def test_where_patterns_mean_nothing_they_are_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown tool in verifier.tools 'write_\*'; did you mean 'write_file'\?$"):
        check_tool_names(["write_*"], ToolRegistry(write_file), "verifier.tools", patterns=False)


@pytest.mark.parametrize("name", ["purge", "p", "", "write_*"])
def test_an_optional_name_fits_its_tool_alone_and_may_be_missing(name: str) -> None:
    optional = make_optional(name)
    assert fnmatchcase(name, optional)
    assert not fnmatchcase(f"{name}x", optional) or name == "write_*"
    if name:
        check_tool_names([optional], ToolRegistry(write_file), "approval.tools")


def test_a_tool_of_child_runs_counts_where_its_parent_says_so() -> None:
    check = ToolRegistry(delegate, write_file)
    with pytest.raises(UnknownName):
        check_tool_names(["purge"], check, "approval.tools")

    add_child_tools(check["delegate"], ["purge"])

    assert find_child_tools(check) == {"purge"}
    check_tool_names(["purge"], check, "approval.tools")
