"""``locus config check``: what is configured, without its secrets, and all that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]


def test_effective_configuration_is_shown_with_defaults(
    locus: Locus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "s3cret-value")
    (here / "locus.toml").write_text(
        '[plugins]\nenabled = ["toy"]\n[plugins.toy]\nkey = { env = "A_KEY" }\n[agent]\nmodel = "toy:echo"\n'
    )

    done = locus("config", "check")

    assert (done.status, done.err) == (0, "")
    assert f"file: {here / 'locus.toml'}" in done.out
    assert "model: toy:echo ([agent] model in " in done.out
    assert "enabled: provenance, toy" in done.out
    assert "  mode = 'ask'" in done.out
    assert "  level = 1" in done.out
    assert "  key = '(secret, from A_KEY)'" in done.out
    assert "s3cret" not in done.out


def test_all_that_is_wrong_is_reported_at_once(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text(
        'required = ["gone"]\ncolour = 1\n[agent]\nmodle = "x"\nmax_iterations = 0\n'
        '[plugins]\nenabled = ["nope"]\nlist = 3\n'
        '[plugins.toy]\nlevel = "7"\nkye = "x"\nkey = { env = "NOT_SET_ANYWHERE" }\n'
    )

    done = locus("config", "check")

    assert done.status == 2
    for said in (
        "colour is not a setting; known: agent, allow, plugins, required",
        "agent.modle is not a setting; did you mean 'model'?",
        "agent.max_iterations is 0: max_iterations must be 1 or more, got 0",
        "plugins.list is 3; expected a table of that plugin's settings",
        "plugins.toy.level is '7'; expected an integer",
        "plugins.toy.kye is not a setting; did you mean 'key'?",
        "NOT_SET_ANYWHERE, which is not set",
        "warning: ",
    ):
        assert said in done.err
    assert all(str(here / "locus.toml") in line for line in done.lines if "plugins.toy" in line)


def test_what_is_required_must_be_installed(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('required = ["gone"]\n')

    done = locus("config", "check")

    assert done.status == 2
    assert "plugin 'gone' is not installed" in done.err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("tyo:echo", "unknown model provider 'tyo'; did you mean 'toy'?"),
        ("zeta:echo", "unknown model provider 'zeta'; known: toy"),
        ("echo", "model 'echo' names no plugin; write 'plugin:echo'"),
    ],
)
def test_model_that_nobody_provides_is_wrong(
    locus: Locus, here: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    (here / "locus.toml").write_text(f'[agent]\nmodel = "{model}"\n')
    configured = locus("config", "check")
    (here / "locus.toml").unlink()
    monkeypatch.setenv("LOCUS_MODEL", model)
    from_environment = locus("config", "check")

    assert (configured.status, from_environment.status) == (2, 2)
    assert configured.lines[0].startswith(f"locus: [agent] model in {here / 'locus.toml'}: {said}")
    assert from_environment.lines[0].startswith(f"locus: LOCUS_MODEL: {said}")


def test_settings_that_are_not_understood_are_not_shown(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins.unknown]\nanything = "s3cret-value"\n')

    done = locus("config", "check")

    assert "anything = '(not read)'" in done.out
    assert "s3cret" not in done.out + done.err


def test_no_file_is_fine(locus: Locus) -> None:
    done = locus("config", "check")

    assert done.status == 0
    assert "file: none" in done.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[plugins\n", "is not valid TOML"),
        ("[agnet]\n", "did you mean 'agent'?"),
        ("[agent]\nmax_iterations = 0\n", "max_iterations"),
    ],
)
def test_file_that_cannot_be_read_is_one_line(locus: Locus, here: Path, text: str, said: str) -> None:
    (here / "locus.toml").write_text(text)

    done = locus("config", "check")

    assert said in done.err
    assert (done.status, len(done.lines)) == (2, 1)


def test_named_file_counts_alone(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text("[broken\n")
    (here / "other.toml").write_text('[agent]\nmodel = "toy:echo"\n')

    assert "model: toy:echo" in locus("config", "check", "--config", "other.toml").out


def test_json_has_the_same(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins]\nenabled = ["toy"]\n[plugins.toy]\nlevel = "x"\n')

    done = locus("config", "check", "--json")

    shown = json.loads(done.out)
    assert done.status == 2
    assert shown["enabled"] == ["provenance", "toy"]
    assert len(shown["problems"]) == 1


@pytest.mark.parametrize(
    "command", [("config", "check"), ("config", "check", "--json"), ("plugins", "doctor"), ("run", "x")]
)
@pytest.mark.parametrize("scheme", ["toy", "nowhere", ""])
def test_no_password_of_a_connection_is_printed(
    locus: Locus, here: Path, command: tuple[str, ...], scheme: str
) -> None:
    (here / "locus.toml").write_text(
        f'[agent]\nmodel = "toy:echo?token=s3cr3t"\ncheckpointer = "{scheme}://user:s3cr3t@host/db?password=s3cr3t"\n'
    )

    done = locus(*command, "--debug")

    assert "s3cr3t" not in done.out + done.err
    if command[0] == "config":
        assert f"{scheme}://user:***@host/db?password=***" in done.out
        assert "toy:echo?token=***" in done.out


def test_relative_path_of_a_store_counts_from_the_file(
    keeper: Locus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "locus.toml").write_text('[agent]\nmodel = "toy:echo"\ncheckpointer = "runs.db"\n')
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")

    assert keeper("run", "x", "--thread", "t").status == 0

    assert (here / "runs.db").exists()
    assert not (here / "below" / "runs.db").exists()
    assert keeper("threads", "show", "t").status == 0
