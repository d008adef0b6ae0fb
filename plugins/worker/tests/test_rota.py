"""The order in which queues are asked: every one has its turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import ConfigError
from locus_plugin_worker.rota import Rota

names = st.lists(st.sampled_from([f"tenant:{c}" for c in "abcdef"]), unique=True, min_size=1)


@given(names)
def test_each_queue_is_first_once_in_as_many_looks_as_there_are_queues(queues: list[str]) -> None:
    rota = Rota(queues)

    looks = [rota.turn() for _ in queues]

    assert sorted(look[0] for look in looks) == sorted(queues)
    assert all(sorted(look) == sorted(queues) for look in looks)


@given(names, names)
def test_a_pattern_covers_the_queues_that_turn_up_each_once(first: list[str], second: list[str]) -> None:
    rota = Rota(["tenant:*"])

    new = [*rota.add([*first, "other"]), *rota.add([*second, "other"])]

    assert sorted(new) == sorted({*first, *second}) == sorted(rota.turn())


def test_a_pattern_alone_has_no_queue_until_one_turns_up() -> None:
    rota = Rota(["tenant:*"])
    assert tuple(rota.turn()) == ()
    assert rota.has_patterns


@pytest.mark.parametrize("wanted", [[], [""], ["a", ""]])
def test_no_queue_at_all_is_an_error(wanted: list[str]) -> None:
    with pytest.raises(ConfigError, match="expected the names of queues"):
        Rota(wanted)
