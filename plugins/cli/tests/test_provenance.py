"""What a stranger may have chosen is asked about by every command that runs an agent, without being switched on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]
Open = Callable[..., Any]

PROMPT = "Read the page."
TARGET = "eve@evil.example"
QUESTION = f"May send be called? Another person may have chosen this: to = '{TARGET}', from the result of read_page"


@pytest.fixture
def command(tools: str) -> list[str]:
    """A run whose model does what the page says."""
    return ["run", PROMPT, "-m", "toy:obeys", "-t", tools]


def test_without_a_terminal_the_run_waits_and_says_what_is_asked(locus: Locus, command: list[str], here: Path) -> None:
    asked = locus(*command, "--thread", "t", "--checkpointer", "toy:p")

    assert asked.status == 3
    assert QUESTION in asked.err
    assert "[allow | refuse]" in asked.err
    assert "tainted_call" not in asked.out + asked.err
    assert not (here / TARGET).exists()

    refused = locus("run", "--thread", "t", "--checkpointer", "toy:p", "--resume", "--answer", "refuse")

    assert refused.status == 0
    assert "That is all." in refused.out
    assert not (here / TARGET).exists()


def test_what_is_allowed_runs_once(locus: Locus, command: list[str], here: Path) -> None:
    locus(*command, "--thread", "t", "--checkpointer", "toy:p2")

    allowed = locus("run", "--thread", "t", "--checkpointer", "toy:p2", "--resume", "--answer", "allow")

    assert allowed.status == 0
    assert (here / TARGET).read_text() == "once\n"


def test_a_target_that_the_user_names_is_not_asked_about(locus: Locus, tools: str, here: Path) -> None:
    done = locus("run", f"Read the page, then send it to {TARGET}.", "-m", "toy:obeys", "-t", tools)

    assert done.status == 0
    assert (here / TARGET).exists()


@pytest.mark.parametrize("switch", [("-p", "no:provenance"), ("--no-plugins",)])
def test_it_can_be_switched_off(locus: Locus, command: list[str], here: Path, switch: tuple[str, ...]) -> None:
    assert locus(*command, *switch).status == 0
    assert (here / TARGET).exists()


@pytest.mark.parametrize(
    "text", ['[plugins]\nenabled = ["no:provenance"]\n', '[plugins.provenance.tools.send]\nmode = "allow"\n']
)
def test_a_configuration_that_is_trusted_can_let_a_call_run(
    locus: Locus, command: list[str], here: Path, text: str
) -> None:
    (here / "locus.toml").write_text(text)

    assert locus(*command).status == 0
    assert (here / TARGET).exists()


def test_the_configuration_can_reject_in_place_of_a_question(locus: Locus, command: list[str], here: Path) -> None:
    (here / "locus.toml").write_text('[plugins.provenance]\nmode = "reject"\n')

    done = locus(*command)

    assert done.status == 0
    assert "That is all." in done.out
    assert "tainted_call" not in done.out + done.err
    assert not (here / TARGET).exists()


@pytest.mark.parametrize(
    "text", ['allow = ["toy", "locus-plugin-cli", "locus-plugin-conversation"]\n', '[plugins]\nenabled = ["toy"]\n']
)
def test_a_list_of_other_plugins_does_not_switch_it_off(
    locus: Locus, command: list[str], here: Path, text: str
) -> None:
    (here / "locus.toml").write_text(text)

    assert locus(*command).status == 3
    assert not (here / TARGET).exists()


@pytest.mark.parametrize(
    "text", ['[plugins]\nenabled = ["no:provenance"]\n', '[plugins.provenance.tools."*"]\nmode = "allow"\n']
)
def test_a_configuration_of_a_stranger_cannot_switch_it_off(
    locus: Locus, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder = tmp_path / "download"
    folder.mkdir()
    (folder / "locus.toml").write_text(text)
    monkeypatch.chdir(folder)

    done = locus(*command)

    assert done.status == 2
    assert "is not trusted" in done.err
    assert not (folder / TARGET).exists()


def test_the_list_of_plugins_shows_that_it_is_active(locus: Locus) -> None:
    (row,) = [line for line in locus("plugins").out.splitlines() if line.startswith("provenance\t")]

    assert "active guard" in row
    (off,) = [line for line in locus("plugins", "-p", "no:provenance").out.splitlines() if "provenance" in line]
    assert "disabled" in off


def test_on_a_terminal_the_person_is_asked_with_the_target_and_where_it_came_from(
    terminal: Open, command: list[str], here: Path
) -> None:
    running = terminal(*command)

    running.expect("May send be called?")
    running.expect(f"to = '{TARGET}', from the result of read_page")
    running.expect(f'about: send(to="{TARGET}")')
    running.expect("1. allow")
    running.send("2\n")
    running.expect("That is all.")
    assert running.finish() == 0
    assert not (here / TARGET).exists()
