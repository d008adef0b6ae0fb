"""Which values of a configuration are shown, and which are hidden."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_plugin_cli.hiding import hide

Locus = Callable[..., Any]

SECRET = "hunter2-correct-horse"


@pytest.mark.parametrize(
    "data",
    [
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"X-Anything": SECRET}},
        {"servers": {"a": {"headers": {"Cookie": SECRET}}}},
        {"servers": {"a": {"env": {"FOO": SECRET}}}},
        {"args": ["serve", "--token", SECRET]},
        {"args": ["serve", f"--token={SECRET}"]},
        {"args": ["--api-key", SECRET, "--verbose"]},
        {"args": ["--pat", SECRET]},
        {"args": [f"--github-pat={SECRET}"]},
        {"args": [f"--GITHUB_TOKEN={SECRET}"]},
        {"args": ["-H", f"Authorization: {SECRET}"]},
        {"args": ["-e", f"API_KEY={SECRET}"]},
        {"args": ["--header", f"X-Key: {SECRET}"]},
        {"args": ["-u", f"me:{SECRET}"]},
        {"command": ["curl", "--password", SECRET]},
        {"url": f"https://me:{SECRET}@host/x"},
        {"url": f"https://{SECRET}@host/x"},
        {"url": f"https://host/x?api_key={SECRET}"},
        {"url": f"https://host/x?access_token={SECRET}&y=1"},
        {"args": [f"https://{SECRET}@host/x"]},
        {"api_key": SECRET},
        {"db_password": SECRET},
        {"tokens": [SECRET]},
        {"credentials": {"anything": {"deep": [SECRET]}}},
        {"system_prompt": f"The password is {SECRET}."},
        {"instructions": SECRET},
        {"anything": f"sk-{SECRET}"},
    ],
    ids=lambda data: json.dumps(data)[:60],
)
def test_what_somebody_could_log_in_with_is_not_shown(data: dict[str, Any]) -> None:
    assert SECRET not in json.dumps(hide(data))


@pytest.mark.parametrize(
    "data",
    [
        {"key": {"env": "A_KEY"}},
        {"max_tokens": 100},
        {"max_tokens_field": "max_completion_tokens"},
        {"token_budget": 3},
        {"keep_alive": "5m"},
        {"args": ["-y", "server-git", "--repository", "."]},
        {"args": ["--path", "/srv", "--pattern=*.py"]},
        {"url": "https://host/path?page=2"},
        {"enabled": ["audit", "guard"], "timeout": 1.5, "on": True, "nothing": None},
        {"env": {"TOKEN": {"env": "A_TOKEN"}}},
    ],
    ids=json.dumps,
)
def test_the_rest_is_shown_as_it_is(data: dict[str, Any]) -> None:
    assert hide(data) == data


@given(st.text(min_size=8), st.sampled_from(["--token", "--api-key", "--auth-token", "--client-secret", "--password"]))
def test_whatever_follows_such_an_option_is_hidden(value: str, option: str) -> None:
    assert hide({"args": [option, f"v{value}"]}) == {"args": [option, "(hidden)"]}
    shown = hide({"args": [f"{option}=v{value}"]})["args"][0]
    assert shown.endswith("(hidden)")


@pytest.mark.parametrize("command", [("config", "check"), ("config", "check", "--json"), ("config", "trust")])
def test_no_command_shows_it(locus: Locus, here: Path, command: tuple[str, ...]) -> None:
    (here / "locus.toml").write_text(
        f'[agent]\nmodel = "toy:echo"\nsystem_prompt = "{SECRET}"\n'
        f'[plugins.toy]\nkind = "--token={SECRET}"\nheaders = "{SECRET}"\n'
        f'[plugins.absent]\nargs = ["--token", "{SECRET}"]\nurl = "https://{SECRET}@host"\n'
    )

    done = locus(*command)

    assert SECRET not in done.out + done.err
