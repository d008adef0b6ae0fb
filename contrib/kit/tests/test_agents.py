"""An agent is found by the name that a command line gives it, and what is wrong with a name is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locus import Agent
from locus.core.errors import ConfigError, InputError
from locus_kit.agents import load_agent

SHOP = '''
from __future__ import annotations

from attrs import frozen

from locus import Agent
from locus.core.errors import ConfigError
from locus_testkit import ScriptedModel


@frozen
class Order:
    """Its annotations are looked up in its module."""

    number: int


agent = Agent(ScriptedModel("Lamps."), name="shop")
price = 5


def make():
    return Agent(ScriptedModel("Lamps."), name=f"made for {Order(7).number}")


def broken():
    raise ValueError("no lamps")


def refused():
    raise ConfigError("no key")


def nothing():
    return None
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of agents in the working directory."""
    path = tmp_path / "agents_of_a_shop.py"
    path.write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield path
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.mark.parametrize("place", ["agents_of_a_shop.py", "agents_of_a_shop"])
@pytest.mark.parametrize(("name", "expected"), [("agent", "shop"), ("make", "made for 7")])
def test_an_agent_is_found_in_a_file_or_module(shop: Path, place: str, name: str, expected: str) -> None:
    found = load_agent(f"{place}:{name}")
    assert isinstance(found, Agent)
    assert found.name == expected


def test_a_file_is_found_beside_the_one_that_names_it(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "other.py").write_text("from beside import agent")
    (tmp_path / "cases" / "beside.py").write_text(SHOP)
    assert load_agent("other.py:agent", folder=tmp_path / "cases").name == "shop"


def test_files_of_one_name_do_not_take_each_others_place(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / shop.name).write_text(SHOP.replace('name="shop"', 'name="new"'))
    # Nor that of a module of the standard library.
    (tmp_path / "json.py").write_text(SHOP)
    for text, name in ((f"{shop.name}:agent", "shop"), (f"new/{shop.name}:agent", "new"), ("json.py:agent", "shop")):
        assert load_agent(text).name == name
    import json  # noqa: PLC0415 - after a file of that name was loaded

    assert json.loads("1") == 1


def test_another_kind_is_taken_where_it_is_asked_for(shop: Path) -> None:
    def is_agent(value: object) -> bool:
        return isinstance(value, Agent | int)

    assert load_agent(f"{shop.name}:price", is_agent=is_agent) == 5
    with pytest.raises(InputError, match="'price' is int, not an Agent"):
        load_agent(f"{shop.name}:price")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents_of_a_shop", "expected FILE.py:NAME, such as shop.py:agent, or MODULE:NAME, got 'agents_of_a_shop'"),
        (":agent", "expected FILE.py:NAME"),
        ("agents_of_a_shop.py:", "expected FILE.py:NAME"),
        ("agents_of_a_shop.py:agnet", "has no 'agnet'; did you mean agents_of_a_shop.py:agent?"),
        ("agents_of_a_shop.py:zzz", "has no 'zzz'; agents in it: 'agent'"),
        ("agents_of_a_shop.py:Order", "'Order' is type, not an Agent"),
        ("agents_of_a_shop.py:nothing", "'nothing' is NoneType, not an Agent"),
        ("agents_of_a_shop.py:broken", "broken() failed: ValueError: no lamps"),
        ("none.py:agent", "file not found: 'none.py' in "),
        ("agents_of_a_shpo:agent", "module 'agents_of_a_shpo' not found; did you mean agents_of_a_shop?"),
        ("zzz_qqq:agent", "no such module in "),
        ("bad.py:agent", "bad.py cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("bad:agent", "bad cannot be loaded: No module named 'nowhere_at_all'"),
        ("worse:agent", "worse cannot be loaded: ZeroDivisionError"),
        ("empty.py:agent", "agents in it: none"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(shop: Path, text: str, says: str) -> None:
    (shop.parent / "bad.py").write_text("import nowhere_at_all")
    (shop.parent / "worse.py").write_text("1 / 0")
    (shop.parent / "empty.py").write_text("")
    with pytest.raises(InputError) as raised:
        load_agent(text)
    assert says in str(raised.value)


def test_an_error_of_the_library_stays_what_it_is(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "unset.py").write_text("from locus.core.errors import ConfigError\nraise ConfigError('no key')")
    for text in (f"{shop.name}:refused", "unset.py:agent", "unset:agent"):
        with pytest.raises(ConfigError, match="no key") as raised:
            load_agent(text)
        assert not isinstance(raised.value, InputError)


def test_a_file_that_failed_is_loaded_anew(shop: Path) -> None:
    bad: Any = shop.parent / "bad.py"
    bad.write_text("1 / 0")
    with pytest.raises(InputError):
        load_agent("bad.py:agent")
    bad.write_text(SHOP)
    assert load_agent("bad.py:agent").name == "shop"
