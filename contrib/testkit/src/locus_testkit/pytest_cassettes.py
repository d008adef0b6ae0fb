"""Cassettes in pytest: a mark, a fixture and an option. Nothing is recorded unless asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from locus_testkit.cassettes import Cassette, CassetteError, RecordMode, Scrubber

__all__ = ["cassette", "cassette_scrubber"]

_CASSETTE = pytest.StashKey[Cassette]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command-line option and its ini setting."""
    parser.getgroup("locus").addoption(
        "--locus-record",
        choices=get_args(RecordMode),
        help="none: replay cassettes; once: record those that are missing; all: record all of them again",
    )
    parser.addini(
        "locus_record",
        "the default of --locus-record, unless the environment variable CI is set (then nothing is recorded)",
        default="none",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and refuse an unknown mode."""
    config.addinivalue_line(
        "markers",
        "cassette(name=None, *, partial=False, match=None): the models of the fixture `cassette` answer from "
        "cassettes/<name>.jsonl beside the test",
    )
    chosen = config.getini("locus_record")
    if chosen not in get_args(RecordMode):
        raise pytest.UsageError(
            f"locus_record must be one of {', '.join(map(repr, get_args(RecordMode)))}, got {chosen!r}"
        )


def _mode(config: pytest.Config) -> RecordMode:
    given = config.getoption("--locus-record")
    if given is None:
        given = "none" if os.environ.get("CI") else config.getini("locus_record")
    return cast(RecordMode, given)


def _path(item: pytest.Item, name: str | None) -> Path:
    if name is None:
        # The same on every backend.
        plain = re.sub(r"(?<=[\[-])(asyncio|trio)(?=[-\]])", "", item.name)
        name = re.sub(r"[^\w.]+", "-", plain).strip("-")
    path = item.path.parent / "cassettes" / f"{name.removesuffix('.jsonl')}.jsonl"
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise pytest.UsageError(f"cassette {name!r} of {item.nodeid} must name a file in {path.parent}")
    return path


@pytest.fixture
def cassette_scrubber() -> Scrubber:
    """What hides secrets in cassettes; override it for more: ``return Scrubber(["..."], also=function)``."""
    return Scrubber()


@pytest.fixture
def cassette(request: pytest.FixtureRequest, cassette_scrubber: Scrubber) -> Cassette:
    """The cassette of a test: ``Agent(cassette.model("provider:model"))``.

    Where it is recorded, it is written when the test has passed. Where it is replayed, a request that could not be
    answered, or one that was not asked, fails the test.
    """
    mark = request.node.get_closest_marker("cassette")
    arguments: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    name = mark.args[0] if mark is not None and mark.args else arguments.pop("name", None)
    made = Cassette(_path(request.node, name), _mode(request.config), scrubber=cassette_scrubber, **arguments)
    request.node.stash[_CASSETTE] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """End the cassette of a test that has passed; say what the cassette lacked where that is why it failed."""
    try:
        result = yield
    except Exception as error:
        made = item.stash.get(_CASSETTE, None)
        failure = None if made is None else made.failure
        if failure is None or isinstance(error, CassetteError):
            raise
        raise failure from error
    made = item.stash.get(_CASSETTE, None)
    if made is not None:
        made.end()
    return result
