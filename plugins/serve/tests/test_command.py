"""``locus serve``: what it refuses to begin with; `test_crash` has servers that began."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, here, run_in_process, site

__all__ = ["here", "locus", "site"]


@pytest.fixture
def locus(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, in a folder with the program of the tests."""
    shutil.copy(Path(__file__).parent / "shop.py", here)
    seen = {"cli", "conversation", "provenance", "serve", "sqlite", "worker"}
    return run_in_process(here, capsys, monkeypatch, seen)


def test_other_machines_are_not_served_without_tokens(locus: Locus) -> None:
    done = locus("serve", "shop.py:agent", "--host", "0.0.0.0", "--checkpointer", "runs.db")
    assert done.status == 2
    assert "no tokens are set" in done.err


def test_a_token_that_the_environment_lacks_is_named_and_not_the_others(
    locus: Locus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_BOB", "b" * 40)
    monkeypatch.delenv("TOKEN_OF_ALICE", raising=False)
    tokens = '{ alice = { env = "TOKEN_OF_ALICE" }, bob = { env = "TOKEN_OF_BOB" } }'
    (here / "locus.toml").write_text(f"[plugins.serve]\ntokens = {tokens}\n", encoding="utf-8")
    done = locus("serve", "shop.py:agent", "--checkpointer", "runs.db")
    assert done.status == 2
    assert "TOKEN_OF_ALICE" in done.err
    assert "bbbb" not in done.err + done.out


@pytest.mark.parametrize(("source", "says"), [("shop.py:nothing", "agents in it"), ("no.py:agent", "not found")])
def test_an_agent_that_is_not_there_is_an_error_that_helps(locus: Locus, source: str, says: str) -> None:
    done = locus("serve", source, "--checkpointer", "runs.db")
    assert done.status == 2
    assert says in done.err
