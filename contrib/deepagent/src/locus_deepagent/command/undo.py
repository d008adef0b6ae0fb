"""`undo`: the last turn of a thread, taken back: its files, and with a fork its conversation and its todos.

Files come first and the conversation last, so that what a kill interrupts is done to the end by calling it once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar
from uuid import uuid4

import anyio.to_thread
from attrs import evolve, field, frozen

import locus_plugin_timetravel as timetravel  # its functions are loaded when they are used
from locus.core.errors import LocusError, NothingToResume
from locus.core.journal import END, EXECUTE, START, THINK, Body, Intent, Outcome, Transition
from locus.core.messages import ToolCall
from locus.files import BackendError
from locus.journal import JournalStore, ThreadInfo, read_entries
from locus_deepagent.command.records import STEP, WRITES, FileRecord
from locus_plugin_filesystem import VersionedFiles, digest_of

__all__ = ["FilesChanged", "Undone", "undo"]

#: Tools with an effect that is taken back here.
_TAKEN_BACK: Final = frozenset((*WRITES, "write_todos"))

T = TypeVar("T")


class FilesChanged(LocusError):
    """Files of the turn were changed since, so nothing was taken back.

    Args:
        paths: which.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        super().__init__(f"changed since the turn: {', '.join(self.paths)}; nothing was undone")


@frozen(kw_only=True)
class Undone:
    """What was taken back.

    Args:
        thread: the thread that is as the conversation was before the turn; None = that was its first turn.
        restored: files that have their old content again.
        removed: files that the turn had made.
        left: files that were left as they are, because they were changed since, or their old content is unknown.
        not_undone: how often tools were called whose effects are not taken back.
    """

    thread: str | None
    restored: Sequence[str] = ()
    removed: Sequence[str] = ()
    left: Sequence[str] = ()
    not_undone: Mapping[str, int] = field(factory=dict)


async def undo(store: JournalStore, thread: str, files: VersionedFiles, *, keep: bool = False) -> Undone:
    """Take back the last turn of a thread, also one that is still open.

    Args:
        store: where the thread is kept.
        thread: its id.
        files: the folder that its agent works in.
        keep: leave files that were changed since as they are; otherwise nothing is undone where there are some.

    Raises:
        ThreadBusy: a run is at work on it.
        NothingToResume: it does not exist, or has no turn.
        FilesChanged: files were changed since.
    """
    claim = await store.claim(thread, f"undo-{uuid4().hex[:8]}")  # nothing runs on it meanwhile
    try:
        every = [entry.body for entry in await read_entries(store, thread)]
        turns, bodies = _last_turn(thread, every)
        is_open = _is_open(bodies)
        earlier = every[: len(every) - len(bodies)]
        threads = {info.thread_id: info for info in await store.threads()}
        for child in _find_children(threads, thread, bodies).values():
            bodies = [*bodies, *(entry.body for entry in await read_entries(store, child.thread_id))]
        plans = _plan(_records(bodies))
        changed = [path for path, plan in plans.items() if not await _call(plan.fits, files)]
        if changed and not keep:
            raise FilesChanged(changed)
        restored: list[str] = []
        removed: list[str] = []
        for path, plan in plans.items():
            if path not in changed and await _call(plan.put_back, files):
                (removed if plan.before is None else restored).append(path)
    finally:
        await store.release(claim)
    made = await _fork(store, thread, turns, _find_children(threads, thread, earlier)) if turns else None
    if made is None or is_open:  # a run that was taken back must not be resumed
        own = _find_children(threads, thread, every, with_origins=False)
        for each in (*(child.thread_id for child in own.values()), thread):
            await store.delete(each)
    return Undone(thread=made, restored=restored, removed=removed, left=changed, not_undone=_count_others(bodies))


@frozen
class _Plan:
    """What becomes of a file.

    Args:
        path: the file.
        before: its content before the turn; None = it did not exist.
        expected: the digests of what it may be now: what it was, and what the turn made of it. Empty = others have
            changed it in the turn, or its old content was not kept.
    """

    path: str
    before: bytes | None
    expected: frozenset[str]

    def fits(self, files: VersionedFiles) -> bool:
        """Whether it is as the turn left it, or as it was before."""
        try:
            return digest_of(files.load(self.path)) in self.expected
        except BackendError:
            return False

    def put_back(self, files: VersionedFiles) -> bool:
        """Give it its old content back; False where it has it.

        Raises:
            FilesChanged: it was changed in this moment.
        """
        try:
            return files.put_back(self.path, self.before, self.expected)
        except BackendError as e:
            raise FilesChanged([self.path]) from e


def _last_turn(thread: str, bodies: Sequence[Body]) -> tuple[int, list[Body]]:
    """How many transitions come before the last turn, and the entries of that."""
    starts = [n for n, body in enumerate(bodies) if isinstance(body, Transition) and body.node == START]
    if not starts:
        raise NothingToResume(f"thread {thread!r} has no turn that could be undone")
    before = sum(isinstance(body, Transition) for body in bodies[: starts[-1]])
    return before, list(bodies[starts[-1] :])


def _is_open(bodies: Iterable[Body]) -> bool:
    return [body.next_node for body in bodies if isinstance(body, Transition)][-1] != END


def _find_children(
    threads: Mapping[str, ThreadInfo], thread: str, bodies: Iterable[Body], *, with_origins: bool = True
) -> dict[str, ThreadInfo]:
    """The threads of the child runs of some runs of a thread, and of theirs: what is behind its name -> the thread.

    Args:
        threads: all of the store, by id.
        thread: its id.
        bodies: entries of the runs.
        with_origins: for a fork, also those of the threads that it is a fork of: it shares entries, but no child runs.
    """
    runs = {body.run_id[:8] for body in bodies}
    found: dict[str, ThreadInfo] = {}
    names: list[str] = [thread]
    for name in names:
        begins = tuple(f"{name}/{run}/" for run in runs)
        for each in threads.values():
            if each.thread_id.startswith(begins):
                found.setdefault(each.thread_id.removeprefix(name), each)
        origin = threads[name].forked_from if with_origins and name in threads else None
        names += [origin] if origin is not None and origin not in names else []
    return dict(sorted(found.items()))


async def _fork(store: JournalStore, thread: str, at: int, children: Mapping[str, ThreadInfo]) -> str:
    """The thread as it was, with the child runs that it had by then: one more undo needs what they wrote.

    The children come first: once its fork is there, a thread has been undone.
    """
    name = f"{thread}~{uuid4().hex[:8]}"
    for rest, child in children.items():
        await store.fork(child.thread_id, child.head, f"{name}{rest}", ())
    return await timetravel.fork(store, thread, at=at, into=name)


def _records(bodies: Iterable[Body]) -> list[FileRecord]:
    found = []
    for body in bodies:
        if isinstance(body, Outcome) and body.step_id.name.startswith(STEP) and isinstance(body.value, Mapping):
            found.append(FileRecord.from_json(body.value))
    return sorted(found, key=lambda record: record.at)


def _plan(records: Iterable[FileRecord]) -> dict[str, _Plan]:
    """What becomes of each file, from what it was before each call that changed it."""
    plans: dict[str, _Plan] = {}
    for record in records:
        plan = plans.get(record.path, _Plan(record.path, record.before, frozenset((digest_of(record.before),))))
        # If it was different by then, something other than the agent changed it in the turn.
        known = not record.is_lost and digest_of(record.before) in plan.expected
        plans[record.path] = evolve(plan, expected=plan.expected | {record.after} if known else frozenset())
    return plans


def _count_others(bodies: Iterable[Body]) -> dict[str, int]:
    """How often other tools with an effect were begun; what the model asked for says which tools these were."""
    asked: dict[tuple[str, int], Sequence[ToolCall]] = {}
    found: Counter[str] = Counter()
    for body in bodies:
        if isinstance(body, Outcome) and body.step_id.node == THINK:
            message = getattr(getattr(body.value, "response", None), "message", None)
            asked[body.run_id, body.step_id.iteration] = getattr(message, "tool_calls", ())
        elif isinstance(body, Intent) and body.step_id.node == EXECUTE and body.step_id.parent is None:
            calls = asked.get((body.run_id, body.step_id.iteration), ())
            found[calls[body.step_id.ordinal].name if body.step_id.ordinal < len(calls) else "an unknown tool"] += 1
    return {name: count for name, count in sorted(found.items()) if name not in _TAKEN_BACK}


async def _call(function: Callable[[VersionedFiles], T], files: VersionedFiles) -> T:
    return await anyio.to_thread.run_sync(function, files)
