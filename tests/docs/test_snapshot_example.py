"""The README's two functions that keep threads in files: whatever a thread is called, they stay in their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.docs.markdown import ROOT, blocks

ODD = [
    "../x",
    "../../../../etc/cron.d/x",
    "/absolute",
    "C:\\Windows\\x",
    "..\\x",
    "nul\0byte",
    "x" * 5_000,
    "CON",
    "aux.json",
    "a:stream",
    "trailing. ",
    "parent/1a2b3c4d/execute:0",
    "",
    ".",
    "Grüße",
    "line\nend",
]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that the block defines, without the agents that it makes with them."""
    [block] = [b for b in blocks(ROOT / "README.md") if b.language == "python" and "SnapshotAdapter(save" in b.text]
    source, _, _ = block.text.partition("keeper = ")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("example"))
        exec(source, names)
        names["folder"] = names["folder"].absolute()
    return names


def files(folder: Path) -> set[Path]:
    return {path for path in folder.parent.rglob("*") if path.is_file()}


@pytest.mark.parametrize("thread_id", ODD)
def test_a_thread_is_kept_in_the_folder_and_found_again(example: dict[str, Any], thread_id: str) -> None:
    example["save"](thread_id, {"id": thread_id})

    assert example["load"](thread_id) == {"id": thread_id}
    assert all(path.parent == example["folder"] for path in files(example["folder"]))


def test_no_two_threads_share_a_file(example: dict[str, Any]) -> None:
    assert len({example["place"](thread_id) for thread_id in ODD}) == len(ODD)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_file_is_named_for_every_system(example: dict[str, Any], thread_id: str) -> None:
    name = example["place"](thread_id).name

    assert len(name) == 69
    assert set(name.removesuffix(".json")) <= set("0123456789abcdef")
