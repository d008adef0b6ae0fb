"""What names a store or a model is shown without the passwords in it, wherever it is shown."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus import Agent, ConfigError
from locus.config import AgentDefaults, load_config, read_config
from locus.plugin import Plugin
from locus.plugins.discovery import Catalogue
from locus.plugins.secret import redact, scrub
from locus_testkit import ScriptedModel

SECRET = "s3cr3t"

broken = Plugin(name="pg", api=(1, 0), summary="Fails.", provides={"checkpointer": f"{__name__}:fail"})


def fail(rest: str, settings: object) -> Any:
    raise ConnectionError("no such host")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pg://user:s3cr3t@host/db", "pg://user:***@host/db"),
        ("pg:postgresql://user:s3cr3t@host:5432/db?x=1", "pg:postgresql://user:***@host:5432/db?x=1"),
        ("redis://:s3cr3t@host", "redis://:***@host"),
        ("pg://user:s3cr3t@s3cr3t/s3cr3t word@host", "pg://user:***@host"),
        ("pg:user:s3cr3t@host/db", "pg:user:***@host/db"),
        ("x://host/db?token=s3cr3t", "x://host/db?token=***"),
        ("x://host/db?a=1&api_key=s3cr3t&b=2", "x://host/db?a=1&api_key=***&b=2"),
        ("x://host/db?key=s3cr3t;sig=s3cr3t", "x://host/db?key=***;sig=***"),
        ("pg:host=h password='s3cr3t s3cr3t' user=u", "pg:host=h password=*** user=u"),
        ("pg:password=s3cr3t", "pg:password=***"),
        ("acme:large?AUTH_TOKEN=s3cr3t", "acme:large?AUTH_TOKEN=***"),
    ],
)
def test_passwords_are_hidden_and_the_rest_is_shown(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:runs.db",
        "sqlite:/home/me@work/runs.db",
        "sqlite:C:/runs@home.db",
        "acme:large",
        "acme:family:7b",
        "pg://user@host/db",
        "x://host:80/db?max_tokens=5&sort_key=a",
        'acme needs a key; set ACME_KEY, or write api_key = { env = "NAME" } in [plugins.acme]',
        "",
    ],
)
def test_what_holds_no_password_is_shown_as_it_is(text: str) -> None:
    assert redact(text) == text
    assert scrub(text) == text


@given(before=st.text(), user=st.from_regex(r"[a-z]{0,8}", fullmatch=True), secret=st.text(min_size=1))
def test_whatever_a_password_consists_of_it_is_gone(before: str, user: str, secret: str) -> None:
    assert redact(f"{before}x://{user}:{secret}@host").endswith(":***@host")


def test_in_prose_a_password_ends_with_its_word() -> None:
    text = "no route to pg://user:s3cr3t@host/db?token=s3cr3t and key=1 is wrong"

    assert scrub(text) == "no route to pg://user:***@host/db?token=*** and key=1 is wrong"


def _in_words(text: str) -> str:
    """Passwords of users in prose, said in one pattern that is quadratic."""
    return re.sub(r"(//[^\s:/@'\"]*:)\S*@", r"\1***@", text)


@given(st.text(st.sampled_from("//::@@ab \n'\"\u00a0"), max_size=40))
def test_a_password_in_prose_is_hidden_up_to_the_last_at_sign_of_its_word(text: str) -> None:
    assert scrub(text) == _in_words(text)


@given(st.text(st.sampled_from("//::@@ab \n'\""), max_size=40))
def test_a_password_in_a_name_is_hidden_up_to_the_last_at_sign_of_all(text: str) -> None:
    hidden = re.sub(r"(//[^\s:/@]*:).*@", r"\1***@", text, flags=re.DOTALL)
    assert redact(text) == re.sub(r"(^[\w+.-]+:[^\s:/\\@]+:)[^/\\]*@", r"\1***@", hidden)


def _seconds(function: Callable[[str], object], text: str) -> float:
    """CPU time of this thread."""
    begun = time.thread_time()
    function(text)
    return time.thread_time() - begun


@pytest.mark.parametrize("function", [redact, scrub])
def test_no_text_takes_more_than_time_in_proportion_to_its_length(function: Callable[[str], object]) -> None:
    """What is quadratic takes thousands of times as long as prose of that length; all of these take a few times."""
    pieces = ["//a:", "//", "//a:@", "//a: ", "@", "a:", "a:b:", "pg:a:", "token", "token=", "token ", "token='", "a."]
    pieces += ["auth-", "?key=", "&sig=", "token={env=", 'token={env="', "token=\t", " token \n", "\\", "'", '"', "-"]
    prose = ("The quick brown fox jumps over the lazy dog; " * 5_000)[:200_000]
    usual = min(_seconds(function, prose) for _ in range(3))
    for piece in pieces:
        for text in ((piece * 200_000)[:200_000], "x://u:" + (piece * 200_000)[:200_000]):
            # What disturbs only adds to the time, so one of three is enough.
            assert any(_seconds(function, text) < 100 * max(usual, 0.001) for _ in range(3)), piece


@pytest.mark.parametrize(
    "text",
    [
        "://user:s3cr3t@host",
        "pg://user:s3cr3t@host",
        "nowhere://user:s3cr3t@host",
        "password=s3cr3t",
        "x.db?token=s3cr3t",
    ],
)
def test_no_error_about_a_checkpointer_has_its_password(text: str, tmp_path: Path) -> None:
    (tmp_path / "locus.toml").write_text(f'[agent]\ncheckpointer = "{text}"\n')
    config = load_config(tmp_path / "locus.toml", environ={})
    for form in ({"checkpointer": text}, {"config": config}):
        with pytest.raises((ConfigError, ConnectionError)) as caught:
            Agent(ScriptedModel(), catalogue=Catalogue.only(broken), **form)

        said = f"{caught.value} {getattr(caught.value, '__notes__', '')}"
        assert SECRET not in said


def test_no_error_about_a_model_has_its_password() -> None:
    with pytest.raises(ConfigError) as caught:
        Agent("://user:s3cr3t@host", catalogue=Catalogue.only())
    assert SECRET not in str(caught.value)


def test_no_repr_of_a_configuration_has_a_password(tmp_path: Path) -> None:
    (tmp_path / "locus.toml").write_text(
        f'[agent]\nmodel = "x:y?token={SECRET}"\ncheckpointer = "pg://u:{SECRET}@h"\n[plugins.p]\nurl = "pg://u:{SECRET}@h"\n'
    )
    config = load_config(tmp_path / "locus.toml", environ={})

    assert config.agent["checkpointer"] == f"pg://u:{SECRET}@h"
    assert SECRET not in repr(config)
    assert "pg://u:***@h" in repr(config)
    assert SECRET not in repr(AgentDefaults(model=f"x://u:{SECRET}@h", checkpointer=f"pg://u:{SECRET}@h"))


def test_no_problem_of_a_configuration_has_a_password(tmp_path: Path) -> None:
    (tmp_path / "locus.toml").write_text(
        f'[agent]\nmodel = ["x://u:{SECRET}@h"]\ncheckpointer = ["pg://u:{SECRET}@h"]\n[plugins]\npg = "pg://u:{SECRET}@h"\n'
    )

    _, problems = read_config(tmp_path / "locus.toml", environ={})

    assert len(problems) == 3
    assert SECRET not in str(problems)
