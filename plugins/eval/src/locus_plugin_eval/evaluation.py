"""`evaluate`: an evaluation as a graph whose tasks are trials, on a journal from which it goes on after a crash.

One super-step has all trials, so many at a time. What a trial came to is recorded when it ends, whatever the others
do, and a resumed evaluation enters only those without a result. An agent's run is on a thread of its own below that
of the evaluation, so it is looked at, replayed and forked like any other.

The trial is ``effect="pure"``: entered again, it goes on with the run that was under way, in which what a tool has
done once is not done again. Agents are evaluated as they are: on their own effects, limits and hooks, and not as
children of the graph, whose guards and budgets would be theirs as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from locus import Agent
from locus.core.errors import ConfigError, InputError, LocusError
from locus.core.journal import StepId
from locus.journal import InProcess, JournalHost, JournalStore, MemoryStore
from locus.models import Model, get_model
from locus.plugin import Lazy
from locus_plugin_eval.cases import Suite
from locus_plugin_eval.checks import Called, Grounded, NotCalled
from locus_plugin_eval.report import Report
from locus_plugin_eval.tape import Tape, TapeEffects, TrialTape
from locus_plugin_eval.trial_run import TrialSetup, run_trial
from locus_plugin_eval.trials import Trial, trial_from_json, trial_to_json

__all__ = ["EvaluationStopped", "evaluate", "find_thread"]

graphs: Any = Lazy("locus.multiagent.graph")

#: Where the state of the graph's run says what is evaluated.
_ABOUT = "eval.about"


class EvaluationStopped(LocusError):
    """An evaluation has not come to its end; what was done is kept, and another call goes on with it.

    Args:
        thread_id: of the evaluation.
        why: in a sentence.
    """

    def __init__(self, thread_id: str, why: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"the evaluation {thread_id!r} stopped: {why}; the same call goes on with it")


async def evaluate(
    agent: Agent[Any, Any],
    suite: Suite,
    *,
    store: JournalStore | None = None,
    thread_id: str | None = None,
    fresh: bool = False,
    deps: Any = None,
    judge: Model | str | None = None,
    tape: Tape | None = None,
    label: str | None = None,
    on_trial: Callable[[Trial, int], None] | None = None,
) -> Report:
    """Run an agent on the cases of a suite, or go on with an evaluation that was left.

    Args:
        agent: who is evaluated; its own checkpointer is left alone.
        suite: the cases.
        store: where the evaluation and its runs are kept; None = in memory, so that nothing can be gone on with.
        thread_id: the evaluation's name. One of that name that has ended is not run again, its report is returned.
            None = the newest of this suite and this agent, as they are now, if that was left open, or a new one.
        fresh: without a name: begin a new one in any case.
        deps: what tools get as ``ctx.deps``.
        judge: who judges, in place of the suite's.
        tape: records the answers of models, or gives recorded ones.
        label: what the agent is called in the report; None = its name.
        on_trial: is called with each trial as it ends, and the number of all; on going on also with those on record.

    Raises:
        ConfigError: a case needs a judge, and no model is named for it, or none has that name; or a check needs a
            plugin that is missing.
        PluginError: the plugin of the judge's model cannot be used.
        InputError: the named evaluation is one of other cases or of another agent.
        EvaluationStopped: it was cancelled, or its journal failed.
    """
    store = MemoryStore() if store is None else store
    label = label or agent.name or "agent"
    judge = suite.judge if judge is None else judge
    if suite.needs_judge is not None and judge is None:
        raise ConfigError(
            f"case {suite.needs_judge!r} asks a judge; name a model with `judge:` in the file, or with --judge"
        )
    if any(isinstance(each, Grounded) for case in suite.cases for each in case.checks):
        Grounded.check_installed()
    about = _describe(agent, suite, judge, tape)
    has_ended = False
    if thread_id is None:
        thread_id = await find_thread(store, f"eval/{_as_name(suite.name)}/{_as_name(label)}/{about}", fresh=fresh)
    else:
        has_ended = await _check_thread(store, thread_id, about)
    order = [(case.id, repeat) for case in suite.cases for repeat in range(1, suite.repeats + 1)]
    if suite.needs_judge is not None and judge is not None and not has_ended:
        # A name that leads nowhere is found here, and not by the first trial when its agent has been paid.
        judge = get_model(judge)
    setup = TrialSetup(agent=agent, store=store, deps=deps, judge=judge)
    app = _make_graph(setup, suite, order, thread_id, tape)
    run = app.run(
        {"order": order}, thread_id=thread_id, request_id="evaluation", metadata={_ABOUT: about, "eval": suite.name}
    )
    async for event in run:
        if on_trial is not None and isinstance(event, graphs.NodeCompleteEvent) and event.node == "trial":
            for form in event.update.get("trials", ()):
                on_trial(trial_from_json(form), len(order))
    result = run.result
    if result.stop_reason != "GraphEnd":
        error = f": {result.error}" if result.error else ""
        raise EvaluationStopped(thread_id, f"{result.stop_reason}{error or f': {result.detail}'}")
    return Report(
        suite=suite.name,
        agent=label,
        thread=thread_id,
        digest=suite.digest,
        trials=tuple(map(trial_from_json, result.values["trials"])),
        thresholds=suite.thresholds,
        replayed=tape is not None and tape.replays,
        notes=tuple(_note_typos(agent, suite)),
    )


def _note_typos(agent: Agent[Any, Any], suite: Suite) -> Iterator[str]:
    """Names in checks that are nearly those of tools: with a typo in it, `not_called` passes whatever an agent does.

    Not an error, and nothing where no name is near: cases may be for several agents, of which not each has all tools.
    """
    tools = agent.runtime.tools
    for case in suite.cases:
        named = dict.fromkeys(each.tool for each in case.all_checks if isinstance(each, Called | NotCalled))
        for name in named:
            near = None if name in tools else tools.nearest(name)
            if near is not None:
                yield f"case {case.id!r} checks calls of {name!r}, which is not a tool; did you mean {near!r}?"


def _make_graph(
    setup: TrialSetup, suite: Suite, order: list[tuple[str, int]], thread_id: str, tape: Tape | None
) -> Any:
    cases = {case.id: case for case in suite.cases}
    tapes: dict[tuple[str, int], TrialTape] = {}

    def tape_of(case: str, repeat: int) -> TrialTape | None:
        if tape is None:
            return None
        return tapes.setdefault((case, repeat), tape.of_trial(case, repeat))

    def tape_of_step(step: StepId) -> TrialTape:
        """The tape of a judge's call: the root of its step is the trial."""
        found = tape_of(*order[step.root.ordinal])
        assert found is not None
        return found

    async def trial(values: dict[str, Any], ctx: Any) -> dict[str, Any]:
        case, repeat = values["case"], values["repeat"]
        # Named as the thread of a child run: `locus resume` and recoveries leave it alone, also where it waits for an
        # answer that the case does not have; and it is kept as long as the evaluation.
        thread = f"{thread_id}/{ctx.run_id[:8]}/1/trial/{case}.{repeat}"
        made = await run_trial(setup, cases[case], repeat, thread, ctx, tape_of(case, repeat))
        return {"trials": [trial_to_json(made)]}

    def fan_out(values: Mapping[str, Any]) -> list[Any]:
        return [graphs.Send("trial", {"case": case, "repeat": repeat}) for case, repeat in values["order"]]

    graph = graphs.StateGraph(reducers={"trials": operator.add}, effect="pure")
    graph.add_node("plan", lambda values: {}).add_node("trial", trial)
    graph.add_edge(graphs.START, "plan").add_edge("trial", graphs.END)
    graph.add_conditional_edges("plan", fan_out, ["trial"])
    return graph.compile(
        checkpointer=setup.store,
        max_tasks=len(order),
        max_concurrency=suite.concurrency,
        name="eval",
        **({} if tape is None else {"effects": TapeEffects(InProcess(), tape_of_step)}),
    )


# -- which evaluation -----------------------------------------------------------------------------


async def find_thread(store: JournalStore, prefix: str, *, fresh: bool) -> str:
    """The newest evaluation with this prefix where that is open, else the name of the next one.

    Args:
        store: where it is kept.
        prefix: of its name; a number follows.
        fresh: do not go on with one.
    """
    n = 1
    while (host := await JournalHost.peek(store, f"{prefix}/{n}")) is not None:
        if host.open_node is not None and not fresh:
            break
        n += 1
    return f"{prefix}/{n}"


async def _check_thread(store: JournalStore, thread_id: str, about: str) -> bool:
    """Whether an evaluation of this name has ended; one of another kind is refused."""
    host = await JournalHost.peek(store, thread_id)
    if host is None:
        return False
    found = None if host.state is None else host.state.metadata.get(_ABOUT)
    if found != about:
        what = "is not an evaluation" if found is None else "is one of other cases, another agent, judge or tape"
        raise InputError(f"the thread {thread_id!r} {what}; give another name")
    return host.open_node is None


def _describe(agent: Agent[Any, Any], suite: Suite, judge: Model | str | None, tape: Tape | None) -> str:
    """A short hash of all that an evaluation depends on and that can be seen from outside: its trials belong together.

    The code of tools and hooks is not part of it: after a change of that, begin a new evaluation.
    """
    runtime = agent.runtime
    parts = [
        suite.digest,
        suite.repeats,
        agent.name,
        agent.version,
        runtime.model.name,
        "" if runtime.system is None else runtime.system.text,
        runtime.tools.digest,
        judge if isinstance(judge, str | None) else judge.name,
        None if tape is None else tape.digest,
    ]
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def _as_name(text: str) -> str:
    """A text as a part of the name of a thread."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text)[:60]
