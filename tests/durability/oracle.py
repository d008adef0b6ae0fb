"""The oracle of three parts: the final state, the journal, the effects.

One part alone can lie. With fencing off, deterministic runs still end in equal states while two workers have written;
only the journal tells. With an acknowledgement that came too early, journal and state are in order; only the log of
effects tells.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from tests.durability.log import Line, Log
from tests.durability.pointed import digest
from tests.durability.world import EFFECTS, MARK, unmarked
from tests.loop.kit import assert_valid_history

from locus.core.journal import BLANK, END, START, Body, Entry, Outcome, StepId, Transition, fold
from locus.core.state import AgentState

__all__ = ["UNKNOWN", "Verdict", "judge", "same_but_for_the_unknown"]

UNKNOWN = "Error: outcome unknown"


@frozen
class Verdict:
    """What is wrong with a run that broke off and went on; nothing, one hopes."""

    wrong: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.wrong


def judge(
    state: AgentState,
    entries: Sequence[Entry],
    log: Log,
    *,
    wanted: AgentState,
    asked: int,
    faults: int,
    thread: str = "t",
    stalled: bool = False,
    rows: Sequence[tuple[int, str]] | None = None,
) -> Verdict:
    """Compare a run with the one that was never interrupted.

    Args:
        state: the final state that the store gives.
        entries: the thread's accepted entries.
        log: of everything outside.
        wanted: the final state of the uninterrupted run.
        asked: how many model calls that one made.
        faults: how often this one broke off, or was overtaken.
        thread: the thread's id; what children did is theirs.
        stalled: a worker may have gone on after it was overtaken: it notices at its next write.
        rows: (number, writer) of what lies in the store, accepted or not; one row may hold the entries before it.
    """
    wrong: list[str] = []
    wrong += same_but_for_the_unknown(state, wanted)
    wrong += _one_chain(entries, rows)
    bodies = [entry.body for entry in entries]
    if fold(BLANK, bodies) != state:
        wrong.append("state: the fold of the journal is another state than the store's")
    wrong += _one_run(bodies)
    wrong += _kept(entries, log, thread)
    wrong += _effects(state, bodies, log, thread, stalled=stalled)
    wrong += _told(bodies, log, thread)
    repeated = len(log.lines("model")) - asked
    if repeated > faults:
        wrong.append(f"effects: {repeated} model calls were repeated for {faults} faults")
    return Verdict(tuple(wrong))


# -- the final state -----------------------------------------------------------------------------------


def same_but_for_the_unknown(got: AgentState, wanted: AgentState) -> list[str]:
    """Where two final states differ, apart from ids, times, marks, and results that confess not to know."""
    try:
        assert_valid_history(got.messages)
    except AssertionError as e:
        return [f"state: the history is not valid: {e}"]
    mine, theirs = _results(got), _results(wanted)
    unknown = {i for i, text in enumerate(mine) if text.startswith(UNKNOWN)}
    if not unknown:
        mine_all, theirs_all = _comparable(got), _comparable(wanted)
        return [] if mine_all == theirs_all else [f"state: {_difference(mine_all, theirs_all)}"]
    wrong = []
    if [(m.role, len(m.content)) for m in got.messages] != [(m.role, len(m.content)) for m in wanted.messages]:
        wrong.append("state: other messages")
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if i not in unknown and unmarked(a) != unmarked(b):
            wrong.append(f"state: result {i} is {a!r}, not {b!r}")
    if (got.iteration, got.usage.total_tokens) != (wanted.iteration, wanted.usage.total_tokens):
        wrong.append("state: other iterations or tokens")
    return wrong


def _results(state: AgentState) -> list[str]:
    return [str(r.content) for m in state.messages for r in m.tool_results]


def _comparable(state: AgentState) -> Any:
    form = json.loads(unmarked(json.dumps(state.to_checkpoint())))
    for name in ("run_id", "started_at", "updated_at", "active_seconds"):
        form.pop(name, None)
    for execution in form["tool_executions"]:
        execution.pop("duration_ms", None)
        execution.pop("key", None)  # a hash over a mark
    form["tool_history"] = [str(h).partition(":")[0] for h in form.get("tool_history", ())]
    return form


def _difference(a: Any, b: Any, at: str = "") -> str:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted({*a, *b}):
            if a.get(name) != b.get(name):
                return _difference(a.get(name), b.get(name), f"{at}.{name}")
    if isinstance(a, list) and isinstance(b, list):
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            if x != y:
                return _difference(x, y, f"{at}[{i}]")
        return f"{at} has {len(a)} items, not {len(b)}"
    return f"{at} is {a!r}, not {b!r}"


# -- the journal ---------------------------------------------------------------------------------------


def _one_chain(entries: Sequence[Entry], rows: Sequence[tuple[int, str]] | None) -> list[str]:
    wrong, parent = [], ""
    for n, entry in enumerate(entries, 1):
        if entry.n != n or entry.parent != parent:
            wrong.append(f"journal: entry {entry.id} with parent {entry.parent!r} stands at {n} after {parent!r}")
        parent = entry.id
    writers = [entry.writer for entry in entries]
    changes = [w for w, before in zip(writers, ["", *writers], strict=False) if w != before]
    if len(changes) != len(set(changes)):
        wrong.append("journal: a writer wrote again after another one had")
    if rows is not None:
        stored = Counter(n for n, _ in rows)
        wrong += [f"journal: {times} entries have the number {n}" for n, times in stored.items() if times > 1]
        strange = set(rows) - {(entry.n, entry.writer) for entry in entries}
        wrong += [f"journal: {row} lies in the store and is not accepted" for row in sorted(strange)]
    return wrong


def _one_run(bodies: Sequence[Body]) -> list[str]:
    """Transitions follow each other, a run ends once, an effect is recorded once."""
    wrong = []
    node = START
    for body in bodies:
        if isinstance(body, Transition):
            if body.node != node:
                wrong.append(f"journal: a transition of {body.node} follows one to {node}")
            node = body.next_node
    if node != END:
        wrong.append(f"journal: the run is open at {node}")
    outcomes = Counter(body.step_id for body in bodies if isinstance(body, Outcome))
    wrong += [f"journal: {times} outcomes of {step}" for step, times in outcomes.items() if times > 1]
    return wrong


def _kept(entries: Sequence[Entry], log: Log, thread: str) -> list[str]:
    """What was acknowledged is there, once, in the order of the writer."""
    wrong = []
    written: dict[str, list[str]] = {}
    for entry in entries:
        written.setdefault(entry.writer, []).append(digest(entry.body))
    told: dict[str, list[str]] = {}
    for line in log.lines("acked"):
        if line["thread"] == thread:
            told.setdefault(line["writer"], []).extend(line["digests"])
    for writer, digests in told.items():
        lost = Counter(digests) - Counter(written.get(writer, ()))
        if lost:
            wrong.append(f"journal: {lost.total()} acknowledged entries of {writer} are not there")
    return wrong


def _told(bodies: Sequence[Body], log: Log, thread: str) -> list[str]:
    """The end is told, as new once at most, and it is the one in the journal; a later telling says that it is one."""
    ends = [body for body in bodies if isinstance(body, Transition) and body.next_node == END]
    if not ends:
        return []
    told = [line for line in log.lines("end") if line["thread"] == thread and line["reason"] == ends[-1].why]
    if not told:
        return ["events: nobody was told of the end"]
    news = sum(not line["replayed"] for line in told)
    return [f"events: the end was told as new {news} times"] if news > 1 else []


# -- the effects ---------------------------------------------------------------------------------------


def _effects(state: AgentState, bodies: Sequence[Body], log: Log, thread: str, *, stalled: bool) -> list[str]:
    wrong = []
    effects = log.lines("effect")
    by_call: dict[str, list[Line]] = {}
    for line in effects:
        if line["tool"] in EFFECTS:
            by_call.setdefault(f"{line['tool']} {line['call']}", []).append(line)
    for call, lines in by_call.items():
        effect = EFFECTS[lines[0]["tool"]]
        if effect == "once" and len(lines) > 1:
            wrong.append(f"effects: {call} may happen once and happened {len(lines)} times")
        if effect != "pure" and len({line["key"] for line in lines}) > 1:
            wrong.append(f"effects: {call} happened under several keys")
        if len({line["mark"] for line in lines}) > 1:
            wrong.append(f"effects: {call} happened in two branches")
    reserved = Counter(line["call"] for line in effects if line["tool"] == "reserve")
    wrong += [f"effects: the step before question {c} happened {n} times" for c, n in reserved.items() if n > 1]
    wrong += _accepted(state, by_call)
    if not stalled:
        wrong += _not_again(bodies, log, thread)
    return wrong


def _accepted(state: AgentState, by_call: dict[str, list[Line]]) -> list[str]:
    """Effects are those of the answers in the history; what has a result has happened."""
    wrong: list[str] = []
    marks: set[str] = set()
    happened: set[str] = set()
    for message in state.messages:
        marks |= set(MARK.findall(message.text))
        for call in message.tool_calls:
            marks.add(str(call.arguments["mark"]))
        for result in message.tool_results:
            if not str(result.content).startswith("Error: "):
                happened |= set(MARK.findall(str(result.content)))
    for key, lines in by_call.items():
        strange = {line["mark"] for line in lines} - marks
        if strange and "/" not in key:
            wrong.append(f"effects: {key} happened for {strange}, which no accepted answer asked for")
    done = {line["mark"] for lines in by_call.values() for line in lines}
    asked = {str(c.arguments["mark"]) for m in state.messages for c in m.tool_calls}
    missing = {mark for mark in happened & asked if mark not in done}
    if missing:
        wrong.append(f"effects: {missing} have results and no effect")
    return wrong


def _not_again(bodies: Sequence[Body], log: Log, thread: str) -> list[str]:
    """A body is not entered after its last result was acknowledged, and a result is told as new once."""
    recorded = Counter(_call(body.step_id) for body in bodies if isinstance(body, Outcome))
    acked: Counter[str] = Counter()
    told: Counter[str] = Counter()
    wrong = []
    for line in log.lines():
        if line["kind"] == "acked" and line["thread"] == thread:
            acked.update(_call(StepId.parse(step)) for step in line["settled"])
        elif line["kind"] == "enter" and acked[line["call"]] >= recorded[line["call"]] > 0:
            wrong.append(f"effects: {line['tool']} {line['call']} was entered although it had finished")
        elif line["kind"] == "told" and not line["replayed"]:
            told[line["call"]] += 1
            if told[line["call"]] > recorded[line["call"]] > 0:
                wrong.append(f"events: the result of {line['call']} was told as new once too often")
    return wrong


def _call(step_id: StepId) -> str:
    """``"2/execute/1#1"`` belongs to the call ``"2.1"``."""
    return f"{step_id.iteration}.{step_id.ordinal}" if step_id.node == "execute" else ""
