"""A small agent over the store under test, in as many segments as its crashes make of it.

Some laws are the kernel's, and a store can still break them: an intent that is lost lets a payment happen twice. They
are proved through the store, the way a crash does it: a `Process` dies in its n-th write, that write stored or not, and
does nothing after that; another one takes the thread and goes on. Everything the model says and every body that is
entered leaves a mark outside, so that what happened twice cannot look like what happened once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from attrs import define, field, frozen

from locus import Agent, AgentResult
from locus.core.errors import NothingToResume
from locus.core.journal import Body, Intent, Outcome
from locus.core.state import AgentState
from locus.journal import Appended, Claim, JournalStore
from locus.tools import Tool, ToolContext, tool
from locus_testkit.contracts._samples import fold_claim
from locus_testkit.crashes import CrashingStore, is_crash
from locus_testkit.scripted_model import ScriptedModel, Turn

__all__ = [
    "UNKNOWN",
    "Case",
    "Context",
    "Crash",
    "Effect",
    "Place",
    "Process",
    "Talk",
    "World",
    "crash_each_write",
    "results_by_tool",
]

_T = TypeVar("_T")
Context: TypeAlias = ToolContext[Any]
Effect: TypeAlias = Literal["pure", "keyed", "once"]
#: Takes a thread away from a worker that died; see `StoreContract.abandon`.
Abandon: TypeAlias = Callable[[JournalStore, Claim], Awaitable[None]]

#: What the model reads about a call that may or may not have had its effect.
UNKNOWN = "Error: outcome unknown"

#: What a write gives that did what it was asked: an append, a snapshot, a release.
_ACCEPTED = (Appended.OK, True, None)

#: More writes than any run of the contract makes.
_MOST = 200


@frozen
class Crash:
    """Where a process dies.

    Args:
        at: in which of its writes (appends, snapshots, releases), counted from 1.
        stored: whether that write reached the store.
    """

    at: int
    stored: bool


class Process(CrashingStore):
    """A store as one process sees it, with what of its writes became known where.

    Args:
        store: the store under test.
        crash: where to die; None = never.
        every: after how many entries the loop is to offer a snapshot, in place of what the store says.
    """

    def __init__(self, store: JournalStore, crash: Crash | None = None, every: int | None = None) -> None:
        where = Crash(0, stored=False) if crash is None else crash
        super().__init__(where.at or None, stored=where.stored, store=store)
        self.crash = crash
        #: What reached the store, what of that the process got to know, and what may have reached it.
        self.arrived: list[Body] = []
        self.acknowledged: list[Body] = []
        self.doubtful: list[Body] = []
        self._every = every

    @property
    def snapshot_every(self) -> int | None:
        """As the test says, or else the store."""
        return super().snapshot_every if self._every is None else self._every

    async def _write(self, write: Callable[[], Awaitable[_T]], bodies: Sequence[Body]) -> _T:
        async def write_and_note() -> _T:
            # Another write of this process may be cancelled in its middle when this one dies.
            self.doubtful += bodies
            got = await write()
            self.doubtful = [body for body in self.doubtful if not any(body is each for each in bodies)]
            if got in _ACCEPTED:
                self.arrived += bodies
            return got

        got = await super()._write(write_and_note, bodies)
        if got in _ACCEPTED:
            self.acknowledged += bodies
        return got

    def has_intent(self, step_id: str) -> bool:
        """Whether the store got the intent of a step."""
        return any(isinstance(body, Intent) and str(body.step_id) == step_id for body in self.arrived)

    def has_outcome(self, step_id: str) -> bool:
        """Whether the store got the outcome of a step."""
        return any(isinstance(body, Outcome) and str(body.step_id) == step_id for body in self.arrived)

    def in_doubt(self, step_id: str) -> bool:
        """Whether it is unknown what the store got of a step."""
        return any(isinstance(body, Intent | Outcome) and str(body.step_id) == step_id for body in self.doubtful)


class Talk:
    """A model that says something else each time: two branches of one run are never equal.

    Args:
        turns: what it asks for, turn by turn; the last one is its answer.
    """

    def __init__(self, *turns: Turn) -> None:
        #: How often it was asked for each turn.
        self.asked: Counter[int] = Counter()
        self._turns = [self._turn(at, turn) for at, turn in enumerate(turns)]
        self.model = ScriptedModel(script=lambda request: self._turns, after="repeat")

    def _turn(self, at: int, turn: Turn) -> Turn:
        def answer(_: Any) -> Turn:
            self.asked[at] += 1
            items: Any = turn if isinstance(turn, list) else [turn]
            return [f"turn {at}, asked {self.asked[at]} times: ", *items]

        return answer


class World:
    """What happened outside of the runs: how often each body was entered, and under which keys.

    Args:
        together: bodies of which none ends before all are entered, until a process has died. Else it would depend on
            the order of a turn's calls, which trio chooses at random, whether one is under way where a process dies.
    """

    def __init__(self, together: Iterable[str] = ()) -> None:
        self.entered: Counter[str] = Counter()
        self.keys: dict[str, set[str]] = {}
        self._awaited = set(together)
        self._go_on = anyio.Event()
        if not self._awaited:
            self._go_on.set()

    def part(self) -> None:
        """Let each body end by itself from now on."""
        self._go_on.set()

    def enter(self, name: str, ctx: Context) -> None:
        """Leave the mark of a body."""
        self.entered[name] += 1
        self.keys.setdefault(name, set()).add(ctx.idempotency_key)

    def effect(self, name: str, effect: Effect, *, result: str = "") -> Tool[..., Any]:
        """A tool that has an effect in this world.

        Args:
            name: the tool's name.
            effect: what may happen to it after a crash.
            result: what it gives; default: that it was done.
        """

        async def act(n: int, ctx: Context) -> str:
            """Have an effect."""
            self.enter(name, ctx)
            self._awaited.discard(name)
            if not self._awaited:
                self._go_on.set()
            await self._go_on.wait()
            return result or f"{name} is done"

        return tool(act, name=name, effect=effect, max_result_chars=max(100_000, len(result)))


@frozen(kw_only=True)
class Place:
    """Where the runs of one test are kept.

    Args:
        stores: the handles that processes get in turn; the same one twice where a second would find nothing.
        abandon: what frees the thread of a process that died.
    """

    stores: tuple[JournalStore, JournalStore]
    abandon: Abandon


@define(eq=False)
class Case:
    """One run on one thread.

    Args:
        place: where it is kept.
        thread_id: the thread.
        agent: makes another agent for each process, as after a restart.
        every: see `Process`.
        between: called after each death.
    """

    place: Place
    thread_id: str
    agent: Callable[[JournalStore], Agent[Any, Any]]
    every: int | None = None
    between: Callable[[], None] = lambda: None
    processes: list[Process] = field(factory=list)
    crashes: int = 0
    result: AgentResult[Any] | None = None

    async def run(self, *crashes: Crash | None) -> AgentState:
        """Run to the end; each of the first processes dies as planned.

        Returns:
            The state that the store holds then.
        """
        plans: list[Crash | None] = [*crashes]
        for _ in range(_MOST):
            died = await self.segment(plans.pop(0) if plans else None)
            if not died and self.result is None:
                break  # it had ended when the last process died
            if not died and self.result is not None and not self.result.interrupts:
                break
        else:
            raise AssertionError(f"the run does not end within {_MOST} segments")
        return await self.state()

    @property
    def dead_process(self) -> Process:
        """The process that died first."""
        return next(one for one in self.processes if one.dead)

    async def state(self) -> AgentState:
        """The state that the store holds."""
        held = await self.place.stores[0].peek(self.thread_id)
        assert held is not None, "the store holds nothing of a run that had begun"
        return fold_claim(held)

    async def segment(self, crash: Crash | None) -> bool:
        """One process; whether it died."""
        questions = () if self.result is None else self.result.interrupts
        one = Process(self.place.stores[len(self.processes) % 2], crash, self.every)
        self.processes.append(one)
        begun = await one.peek(self.thread_id) is not None
        agent, self.result = self.agent(one), None
        answers = {each.interrupt_id: f"yes, {each.question}" for each in questions} or None
        try:
            if begun:
                self.result = await agent.resume(self.thread_id, answers)
            else:
                self.result = await agent.run("Do it.", thread_id=self.thread_id)
        except NothingToResume:
            return False
        except BaseException as error:
            if not is_crash(error):
                raise
            self.crashes += 1
            for claim in one.claims:
                await self.place.abandon(one.store, claim)
            self.between()
            return True
        return False


async def crash_each_write(make: Callable[[str], Case], *, after: int = 0) -> list[Case]:
    """A run for each point where one of its processes can die, each on a thread of its own, run to its end.

    Args:
        make: a fresh case for a thread id.
        after: how many processes live before the one that dies, where the run waits for a person.
    """
    cases: list[Case] = []
    for crash in _points():
        case = make(f"{after}-{'stored' if crash.stored else 'lost'}-{crash.at}")
        await case.run(*[None] * after, crash)
        if case.crashes:
            cases.append(case)
        elif crash.stored:
            break  # it has fewer writes than that
    return cases


def _points() -> Iterator[Crash]:
    for at in range(1, _MOST):
        yield Crash(at, stored=False)
        yield Crash(at, stored=True)


def results_by_tool(state: AgentState) -> dict[str, str]:
    """What the model read about each tool's last call, by the tool's name."""
    return {str(result.name): str(result.content) for message in state.messages for result in message.tool_results}
