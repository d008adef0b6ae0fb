"""The picture at the top of the README shows what `locus` prints today."""

from __future__ import annotations

import re

import pytest
from docs import picture
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def drawn() -> str:
    return picture.PICTURE.read_text(encoding="utf-8")


def test_the_picture_shows_what_the_commands_print_today(drawn: str) -> None:
    """`python -m docs.picture` draws it again."""
    assert picture.picture_text(drawn) == picture.picture_text(picture.draw(picture.record()))


def test_the_first_command_of_the_picture_is_the_one_that_the_readme_tells_to_type() -> None:
    typed = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ").split())
    assert f".venv/bin/{picture.COMMANDS[0]}" in typed


def test_the_picture_fetches_nothing(drawn: str) -> None:
    assert set(re.findall(r"\w+://[^\"' )]+", drawn)) == {"http://www.w3.org/2000/svg"}


def test_what_differs_is_found() -> None:
    assert picture.picture_text('<text x="0" y="1">a&#160;b, 12.3&#160;ms</text>') == "a b, ..."
