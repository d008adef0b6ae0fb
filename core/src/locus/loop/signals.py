"""What a run hears from outside of its process: the turn that was submitted, signals, and that its claim was lost.

A lost claim cancels the run, and its next write, which the store refuses, ends it.
Signals are forgotten when the segment gives the thread back. Until then a crash has them read again, so each must do
nothing when its work is done: a cancel names its run, a question is answered once, and a turn has a request id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from attrs import evolve

from locus.core.errors import InterruptMismatch
from locus.core.journal import Answered, Cancelled, Submitted
from locus.journal.recovery import REQUEST_IDS
from locus.loop.thread import matched_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from locus.journal.signals import Signal
    from locus.loop.context import SegmentContext
    from locus.loop.thread import Segment

#: The metadata entry: the version of the agent that began the newest submitted run.
VERSION = "locus.version"


def listen(run: SegmentContext) -> None:
    """Let a run hear what its store finds out by itself; the store may say it in any thread."""
    watch = run.host.claim.watch
    # The store's thread has the watch: it must not keep a run alive that was dropped, nor the store itself.
    found = ref(run)

    def hear(signal: Signal) -> None:
        body, run = signal.body, found()
        if run is not None and isinstance(body, Cancelled) and body.run_id in ("", run.run_id):
            run.heard.add(signal.n)
            run.cancel_now(body.reason)

    def leave() -> None:
        run = found()
        if run is not None:
            run.cancel_now("another worker has the thread")

    watch.on_signal, watch.on_lost = hear, leave
    if watch.is_lost:
        leave()
    if run.parent is not None:
        run.host.follow_claims([each.host.claim.watch for each in find_runs_above(run)])


def find_runs_above(run: SegmentContext) -> Iterator[SegmentContext]:
    """Those that wait for it, the nearest first."""
    above = run.parent
    while above is not None:
        yield above
        above = above.parent


def take_up(run: SegmentContext, segment: Segment) -> Segment:
    """What a segment that goes on with its thread is to do, by what was submitted and signalled."""
    host = run.host
    turn = host.submitted
    answers: dict[str, object] = {}
    later: list[tuple[int, Submitted]] = []
    open_run = turn.run_id if turn is not None else host.run_id if host.open_node is not None else None
    had = {*host.state.metadata.get(REQUEST_IDS, ()), "" if turn is None else turn.request_id}
    for signal in host.claim.signals:
        body = signal.body
        if isinstance(body, Submitted) and signal.id not in had:
            later.append((signal.n, evolve(body, request_id=signal.id)))
            continue
        run.heard.add(signal.n)
        if isinstance(body, Cancelled) and open_run is not None and body.run_id in ("", open_run):
            run.cancel_now(body.reason)
        elif isinstance(body, Answered):
            try:
                given = {body.interrupt_id: body.answer} if body.interrupt_id else body.answer
                answers |= matched_answers(host, given)
            except InterruptMismatch:
                continue  # the question was answered, or is not asked any more
    if turn is None and later and not answers and (host.open_node is None or host.open_questions):
        n, turn = later[0]
        run.heard.add(n)
    if turn is None:
        return evolve(segment, answer=answers) if answers and segment.answer is None else segment
    version = run.runtime.version or turn.version
    metadata = turn.metadata | {VERSION: version} if version else turn.metadata
    return evolve(segment, prompt=turn.prompt, metadata=metadata, request_id=turn.request_id, run_id=turn.run_id)
