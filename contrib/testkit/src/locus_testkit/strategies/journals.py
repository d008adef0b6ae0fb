"""What a run is made of: differences of states, journal entries, and whole journals."""

from __future__ import annotations

from functools import reduce
from typing import Any, get_args

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from locus import Option
from locus.core.journal import (
    BLANK,
    END,
    START,
    Answered,
    Asked,
    Body,
    Cancelled,
    Intent,
    ModelFailed,
    Outcome,
    Paused,
    PauseKind,
    Policy,
    Resumed,
    Retried,
    StateDelta,
    StepId,
    Submitted,
    Transition,
    delta,
)
from locus.core.state import AgentState
from locus_testkit.strategies.data import build_once, data, moments, texts
from locus_testkit.strategies.messages import messages, usages
from locus_testkit.strategies.states import growths, stamps, state_pairs, states

__all__ = ["Journal", "bodies", "deltas", "journals", "step_bodies"]

_NODES = st.sampled_from(["think", "execute", "reflect", "terminate"])
_RUNS = st.sampled_from(["run-1", "run-2"])
_STEPS = st.sampled_from([StepId(0, "think"), StepId(0, "execute"), StepId(0, "execute", 1), StepId(1, "think")])


@build_once
def deltas() -> SearchStrategy[StateDelta]:
    """Differences between two states."""
    return state_pairs().map(lambda pair: delta(*pair))


@build_once
def step_bodies() -> SearchStrategy[Body]:
    """Every kind of entry that does not change the state."""
    policies = st.sampled_from(get_args(Policy))
    step: dict[str, SearchStrategy[Any]] = {"run_id": _RUNS, "step_id": _STEPS}
    ask: dict[str, SearchStrategy[Any]] = {"run_id": _RUNS, "interrupt_id": _STEPS.map(lambda s: f"{s}?0")}
    segment: dict[str, SearchStrategy[Any]] = {"run_id": _RUNS, "segment": st.integers(0, 5)}
    return st.one_of(
        st.builds(Intent, **step, digest=texts(), policy=policies),
        st.builds(Outcome, **step, digest=texts(), value=data(), error=st.none() | texts()),
        st.builds(
            Asked,
            **ask,
            step_id=_STEPS,
            question=texts(),
            options=st.lists(texts() | st.builds(Option, texts(), allow=st.booleans()), max_size=2).map(tuple),
            tool_name=texts(),
            call_id=texts(),
            digest=texts(),
        ),
        st.builds(Answered, **ask, answer=data()),
        st.builds(
            ModelFailed,
            **step,
            digest=texts(),
            error_type=texts(),
            error=texts(),
            retryable=st.booleans(),
            usage=st.none() | usages(),
        ),
        st.builds(Retried, **step, reason=texts()),
        st.builds(Cancelled, run_id=_RUNS, reason=texts()),
        st.builds(
            Submitted,
            run_id=_RUNS,
            prompt=messages(),
            metadata=st.dictionaries(texts(), data(), max_size=2),
            agent=texts(),
            version=texts(),
            queue=texts(),
        ),
        st.builds(
            Paused,
            **segment,
            kind=st.sampled_from(get_args(PauseKind)),
            reason=texts(),
            not_before=st.none() | moments(),
        ),
        st.builds(Resumed, **segment),
    )


def _transitions(change: SearchStrategy[StateDelta]) -> SearchStrategy[Transition]:
    return st.builds(
        Transition,
        run_id=_RUNS,
        node=_NODES | st.just(START),
        next_node=_NODES | st.just(END),
        delta=change,
        why=texts(),
        satisfied=st.lists(texts(), max_size=2).map(tuple),
        segment=st.integers(0, 5),
        error=st.none() | texts(),
        not_before=st.none() | moments(),
        detail=texts(),
        instead_of=_NODES | st.just(""),
        uncharged=st.none() | usages(),
        request_id=texts(),
    )


@build_once
def bodies() -> SearchStrategy[Body]:
    """Any entry; a transition belongs to an arbitrary state. See `journals` for whole stories."""
    return step_bodies() | _transitions(deltas())


@frozen
class Journal:
    """A thread's journal and the state that it makes.

    Args:
        bodies: what happened, from a blank state on.
        states: the state after each of them.
    """

    bodies: tuple[Body, ...] = ()
    states: tuple[AgentState, ...] = ()

    @property
    def state(self) -> AgentState:
        """The state after all of them."""
        return self.states[-1] if self.states else BLANK


@build_once
@st.composite
def journals(draw: DrawFn, *, max_size: int = 8) -> Journal:
    """A journal that tells one story: steps, and transitions that follow on each other.

    Args:
        draw: given by hypothesis.
        max_size: the most entries.
    """
    told: list[Body] = []
    after: list[AgentState] = []
    state = BLANK
    for _ in range(draw(st.integers(0, max_size))):
        if draw(st.booleans()):
            told.append(draw(step_bodies()))
        else:
            new = draw(states()) if state is BLANK else _grow(draw, state)
            told.append(draw(_transitions(st.just(delta(state, new)))))
            state = new
        after.append(state)
    return Journal(tuple(told), tuple(after))


def _grow(draw: DrawFn, state: AgentState) -> AgentState:
    steps = [*draw(st.lists(growths(), max_size=3)), draw(stamps())]
    return reduce(lambda made, step: step(made), steps, state)
