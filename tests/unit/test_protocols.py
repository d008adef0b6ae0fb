"""A value that hands its calls on is what it stands for, in every Python."""

from __future__ import annotations

from typing import Any

from locus import Agent
from locus.core.protocols import has_all_of
from locus.journal import MemoryStore
from locus.journal.store import JournalStore
from locus.models import Model
from locus_testkit import ScriptedModel


class Handing:
    """Hands everything on."""

    def __init__(self, to: Any) -> None:
        self._to = to

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)


def test_what_hands_its_calls_on_has_the_methods() -> None:
    assert has_all_of(Handing(MemoryStore()), JournalStore)
    assert has_all_of(Handing(ScriptedModel("x")), Model)
    Agent(Handing(ScriptedModel("x")), checkpointer=Handing(MemoryStore()))


def test_what_lacks_one_has_not() -> None:
    assert not has_all_of(object(), JournalStore)
    assert not has_all_of(Handing(MemoryStore()), Model)
