"""The command line with the plugin's commands, and a shop that it runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, environment, here, run_in_process, site, tools, vouch, warm_server
from plugins.cli.tests.warm import WarmServer

from .chaos import Place
from .processes import FilePlace, Process

__all__ = ["environment", "here", "locus", "place", "shop", "site", "start", "threads", "tools", "warm_server"]

SHOP = Path(__file__).parent / "shop.py"


@pytest.fixture
def shop(here: Path) -> Iterator[Path]:
    """The program with the agents, in the working directory."""
    yield Path(shutil.copy(SHOP, here))
    sys.modules.pop("shop", None)


@pytest.fixture
def locus(here: Path, shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, where this plugin and one that keeps queues are installed."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(
        here, capsys, monkeypatch, {"cli", "conversation", "provenance", "sqlite", "telemetry", "worker"}
    )


@pytest.fixture
def place() -> Place:
    """Where runs are kept: in a file of the working directory."""
    return FilePlace()


@pytest.fixture
def start(
    shop: Path, environment: dict[str, str], warm_server: WarmServer, place: Place
) -> Iterator[Callable[..., Process]]:
    """Starts commands on what `place` says; what still runs in the end is killed."""
    folder = shop.parent
    (folder / "locus.toml").write_text(place.settings)
    vouch(folder)
    with ExitStack() as stack:

        def begin(*arguments: str, **more: str) -> Process:
            options = ("--json", "--checkpointer", place.checkpointer)
            return stack.enter_context(Process(warm_server, folder, {**environment, **more}, *arguments, *options))

        yield begin


@pytest.fixture
def threads(locus: Locus, start: Callable[..., Process], place: Place) -> Callable[..., list[str]]:
    """Submits turns; gives their threads."""

    def submit(source: str, count: int = 1) -> list[str]:
        done = [locus("submit", "Go.", "-a", source, "--checkpointer", place.checkpointer) for _ in range(count)]
        assert [each.status for each in done] == [0] * count, done
        return [each.out.strip() for each in done]

    return submit
