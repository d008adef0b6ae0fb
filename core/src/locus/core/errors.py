"""The exception tree of the framework, in one place so that a caller can choose how much to catch.

LocusError
├── ConfigError                 what the user configured is wrong
│   ├── SettingsError           every wrong setting at once (`.problems`)
│   ├── UnknownName             no such plugin, model, option (`.name`, `.known`)
│   └── ToolDefinitionError     a tool whose schema cannot be inferred, or a name used twice
├── PluginError                 a plugin cannot be used (`.plugin`)
│   ├── PluginLoadError         importing it failed
│   ├── PluginIncompatible      its API version does not fit
│   ├── PluginNotAllowed        its distribution is not among the allowed ones
│   └── HookSpecError           it implements a hook that does not exist, or with other arguments
├── InputError                  a prompt or a value handed in cannot be used
├── NotSerialisable             a value has no lossless JSON form (`.path`)
│   └── CheckpointError         a checkpoint cannot be read
│       ├── CheckpointTooNew    it was written by a newer version (`.found`, `.supported`)
│       └── CheckpointTooOld    a journal entry was written in a format that is not read any more
├── ModelError                  a model call failed (`.provider`, `.status`, `.retryable`, `.retry_after`, `.usage`)
│   └── ContextOverflow         the request is longer than the model's window
├── ToolError                   a tool call failed in a way the model should hear of
│   └── RetryableToolError      ... and nothing happened, so it may be tried again
├── ConditionError              a termination predicate raised
├── BudgetExceeded              a call was not made: a condition of the run, or of one above it, forbids it
├── JournalError                the journal cannot do what was asked
│   ├── ThreadBusy              another run holds the thread (`.thread_id`, `.holder`, `.since`)
│   ├── Fenced                  this writer lost its claim
│   ├── StoreError              the store could not read or write; nothing is half-written (`.store`)
│   │   └── JournalDamaged      what it gave back is not what was written (`.thread_id`, `.n`)
│   ├── StepFailed              a recorded step had raised
│   ├── OutcomeUnknown          a crash came between an effect and its record
│   ├── StepMismatch            a recorded step differs from the one the code asks for
│   ├── ReplayDiffers           a replay came to something else than the journal (`.difference`)
│   ├── NothingToResume         no open run on the thread
│   ├── QueueFull               as many threads wait in a queue as may (`.queue`, `.waiting`, `.max_depth`)
│   ├── RequestSuperseded       the request was an earlier turn of the thread (`.thread_id`, `.request_id`)
│   ├── InterruptMismatch       an answer names no open interrupt, or does not say which
│   └── DeadLetter              the run's workers died again and again in one place: it is set aside
└── RunError                    misuse of a run
    ├── RunAlreadyUsed          a Run serves once
    ├── RunNotFinished          its result was asked for too early
    └── RunFailed               `AgentResult.raise_for_failure()` on a run that failed (`.reason`)
        └── AnswerFailed        ... because its answer is cut, filtered, refused, empty, or not what was asked for
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from locus.core.lazy import Lazy

if TYPE_CHECKING:
    import difflib

    from locus.core.messages import Usage
else:
    difflib = Lazy("difflib")

__all__ = [
    "AnswerFailed",
    "BudgetExceeded",
    "CheckpointError",
    "CheckpointTooNew",
    "CheckpointTooOld",
    "ConditionError",
    "ConfigError",
    "ContextOverflow",
    "DeadLetter",
    "Fenced",
    "HookSpecError",
    "InputError",
    "InterruptMismatch",
    "JournalDamaged",
    "JournalError",
    "LocusError",
    "ModelError",
    "NotSerialisable",
    "NothingToResume",
    "OutcomeUnknown",
    "PluginError",
    "PluginIncompatible",
    "PluginLoadError",
    "PluginNotAllowed",
    "QueueFull",
    "ReplayDiffers",
    "RequestSuperseded",
    "RetryableToolError",
    "RunAlreadyUsed",
    "RunError",
    "RunFailed",
    "RunNotFinished",
    "SettingsError",
    "StepFailed",
    "StepMismatch",
    "StoreError",
    "ThreadBusy",
    "ToolDefinitionError",
    "ToolError",
    "UnknownName",
    "closest",
    "is_transient",
]


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that a misspelled one most likely meant, or None when nothing is near.

    Args:
        name: as it was written.
        known: what it may have been meant to be.
        cutoff: how near, from 0.0 to 1.0 (the same).
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


class LocusError(Exception):
    """The root: everything this framework raises on purpose derives from it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By its parts: `args` holds the message, which is not what the constructors take.
        return type(self).__new__, (type(self), *self.args), self.__dict__.copy()


class ConfigError(LocusError):
    """What the user configured is wrong; fixing the configuration fixes it."""


class SettingsError(ConfigError):
    """One or more settings are wrong.

    Args:
        problems: one line each, complete with source, key path, value and expectation.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UnknownName(ConfigError):
    """A name that nothing answers to.

    Args:
        kind: what was looked for, such as ``"plugin"`` or ``"option of Agent"``.
        name: the name as written.
        known: the names that would have worked.
        hint: what to do, beyond choosing a known name.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str] = (), hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        near = closest(name, self.known)
        text = f"unknown {kind} {name!r}"
        if near is not None:
            text += f"; did you mean {near!r}?"
        elif self.known:
            text += f"; known: {', '.join(self.known)}"
        joint = " " if text.endswith("?") else "; "
        super().__init__(f"{text}{joint}{hint}" if hint else text)


class ToolDefinitionError(ConfigError):
    """A function cannot become a tool: its schema cannot be inferred or its name is taken."""


class PluginError(LocusError):
    """A plugin cannot be used.

    Args:
        plugin: the plugin's name.
        message: what happened and what to do.
    """

    def __init__(self, plugin: str, message: str) -> None:
        self.plugin = plugin
        super().__init__(f"plugin {plugin!r}: {message}")


class PluginLoadError(PluginError):
    """Importing the plugin, or a part of it, failed; the cause is chained."""


class PluginIncompatible(PluginError):
    """The plugin was written for another version of the plugin API."""


class PluginNotAllowed(PluginError):
    """The plugin comes from a distribution that the configuration does not allow; nothing of it was imported."""


class HookSpecError(PluginError):
    """The plugin implements a hook that does not exist, or with arguments it does not have."""


class InputError(LocusError):
    """A prompt or another value handed in cannot be used."""


class NotSerialisable(LocusError):
    """A value has no lossless JSON form.

    Args:
        path: the place of the value, such as ``"metadata['user']"``.
        message: what it is and what to do.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


class CheckpointError(NotSerialisable):
    """A checkpoint or a journal entry cannot be read back."""


class CheckpointTooNew(CheckpointError):
    """A checkpoint was written by a newer version.

    Args:
        found: the schema version in the checkpoint.
        supported: the newest schema version this installation reads.
    """

    def __init__(self, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(
            "schema",
            f"the checkpoint has schema version {found}, this installation reads up to {supported}; "
            "upgrade locus-core to read it (nothing was changed)",
        )


class CheckpointTooOld(CheckpointError):
    """A journal entry was written in a format that is not read any more.

    Args:
        found: the version of the entry.
        supported: the version that this installation reads and writes.
    """

    def __init__(self, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(
            "v",
            f"the entry was written in version {found} of the journal's format, this installation reads version "
            f"{supported}; read it with the version of locus-core that wrote it, or start a new thread",
        )


class ModelError(LocusError):
    """A model call failed.

    Args:
        message: what happened, without credentials.
        provider: the scheme of the provider, or ``""``.
        status: the HTTP status, where there was one.
        request_id: the provider's id of the request, where it gave one.
        retryable: whether the same request may succeed later; None = what its status says: 408, 409, 425, 429 and
            5xx (but 501 and 505) may, everything else may not.
        retry_after: seconds the provider asked to wait, where it said so.
        usage: what the failed call has used nevertheless, where the provider said so; the run is charged for it.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.provider, self.status, self.request_id = provider, status, request_id
        # 529 is how some providers say that they are overloaded; 501 and 505 are about the request for good.
        passes = status in (408, 409, 425, 429) or (status is not None and status >= 500 and status not in (501, 505))
        self.retryable = passes if retryable is None else retryable
        self.retry_after, self.usage = retry_after, usage
        super().__init__(message)


def is_transient(error: BaseException) -> bool:
    """Whether what a model call raised may pass: the same request may succeed later.

    A `ModelError` says so itself. Of what else may be raised, time-outs and failures of the network do; what concerns
    a path of this machine does not.
    """
    if isinstance(error, ModelError):
        return error.retryable
    return isinstance(error, TimeoutError | OSError) and not isinstance(error, _OF_PATHS)


_OF_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


class ContextOverflow(ModelError):
    """The request is longer than the model's context window; the same request never succeeds on a retry."""


class ToolError(LocusError):
    """Raise it in a tool to tell the model plainly what went wrong."""


class RetryableToolError(ToolError):
    """Raise it in a tool that knows that *nothing happened*: the same call may be tried again."""


class ConditionError(LocusError):
    """The predicate of the condition of that name raised; the cause is chained."""

    def __init__(self, name: str, cause: BaseException) -> None:
        self.name, self.cause = name, cause
        super().__init__(f"condition {name} raised {type(cause).__name__}: {cause}")


class BudgetExceeded(LocusError):
    """A model call was not made, or a child run not started: the condition of the run or of one above it forbids it.

    Args:
        reason: the condition's name.
        message: what happened, where it is not a model call that was not made.
    """

    def __init__(self, reason: str, message: str = "") -> None:
        self.reason = reason
        super().__init__(message or f"no further model call: {reason} is satisfied")


class JournalError(LocusError):
    """The journal cannot do what was asked."""


class ThreadBusy(JournalError):
    """Another run holds the thread.

    Args:
        thread_id: the thread asked for.
        holder: the worker that holds it.
        since: when it claimed the thread, ISO 8601 in UTC, where known.
    """

    def __init__(self, thread_id: str, holder: str, since: str = "") -> None:
        self.thread_id, self.holder, self.since = thread_id, holder, since
        when = f" since {since}" if since else ""
        super().__init__(
            f"thread {thread_id!r} is busy: {holder} holds it{when}; "
            "wait for that run, cancel it, or use another thread_id"
        )


class QueueFull(JournalError):
    """So many threads wait in a queue that no other was put into it; nothing was written.

    Args:
        queue: its name.
        waiting: how many wait there, for a worker or for their time.
        max_depth: how many may.
    """

    def __init__(self, queue: str, waiting: int, max_depth: int) -> None:
        self.queue, self.waiting, self.max_depth = queue, waiting, max_depth
        super().__init__(
            f"queue {queue!r} is full: {waiting} waiting, max_depth={max_depth}; nothing was submitted: "
            "try again later, start more workers for it, or allow more"
        )


class RequestSuperseded(JournalError):
    """The request was an earlier turn of the thread: it is not run again, and its result is the thread's no more."""

    def __init__(self, thread_id: str, request_id: str) -> None:
        self.thread_id, self.request_id = thread_id, request_id
        super().__init__(
            f"request {request_id!r} was an earlier turn of thread {thread_id!r} and is not run again; "
            "the thread's history has its answer, and another turn needs another request_id"
        )


class Fenced(JournalError):
    """Another writer claimed the thread after this writer; what this writer tried to add was refused."""


class StoreError(JournalError):
    """The store could not read or write: a full disk, a damaged file, a lost connection. Nothing is half-written.

    What the run had committed is kept, and the run is left open: ``resume(thread_id)`` goes on once the cause is gone.

    Args:
        message: what happened, with which value, and what to do.
        store: the store, as its owner calls it, or ``""``.
    """

    def __init__(self, message: str, *, store: str = "") -> None:
        self.store = store
        super().__init__(message)


class JournalDamaged(StoreError):
    """What a store gave back is not what was written: a missing entry, a wrong parent, a changed byte.

    Args:
        message: what is damaged and what to do.
        thread_id: the thread, or ``""`` where it is not known.
        n: number of the first damaged entry, or None where it is not one entry.
        store: the store, as its owner calls it, or ``""``.
    """

    def __init__(self, message: str, *, thread_id: str = "", n: int | None = None, store: str = "") -> None:
        self.thread_id, self.n = thread_id, n
        super().__init__(message, store=store)


class StepFailed(JournalError):
    """A recorded step had raised; it is not run again, its recorded error is raised."""


class OutcomeUnknown(JournalError):
    """A crash came between an effect that may happen once only and its record: it may have happened."""

    def __init__(self, step_id: str) -> None:
        self.step_id = step_id
        super().__init__(
            f"step {step_id!r} was started before an interruption and may have had its effect; it is not run again"
        )


class StepMismatch(JournalError):
    """The code asks for a step that differs from the recorded one: it is not the code that was running."""


class ReplayDiffers(JournalError):
    """A replay of a thread came to something else than its journal says.

    Args:
        thread_id: the thread.
        difference: what differs first, a value of the package that replayed it.
    """

    def __init__(self, thread_id: str, difference: Any) -> None:
        self.thread_id, self.difference = thread_id, difference
        super().__init__(f"thread {thread_id!r}: {difference}")


class NothingToResume(JournalError):
    """The thread has no open run."""


class InterruptMismatch(JournalError):
    """An answer names no open interrupt, or several are open and it does not say which."""


class DeadLetter(JournalError):
    """The workers of a run died again and again in one place: it is set aside until it is resumed.

    Args:
        thread_id: the thread.
        cause: where they died, and how many of them.
    """

    def __init__(self, thread_id: str, cause: str) -> None:
        self.thread_id, self.cause = thread_id, cause
        super().__init__(f"thread {thread_id!r} is set aside: {cause}; fix the cause, then call resume(thread_id)")


class RunError(LocusError):
    """A run was used in a way it does not offer."""


class RunAlreadyUsed(RunError):
    """A Run serves once; call ``agent.run(...)`` again for another."""


class RunNotFinished(RunError):
    """The result of a run was asked for before the run ended."""


class RunFailed(RunError):
    """A run failed (see `AgentResult.raise_for_failure`); what went wrong is chained.

    Args:
        reason: why it ended, as in `AgentResult.stop_reason`.
        detail: what went wrong.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        super().__init__(f"the run ended with {reason}{': ' if detail else ''}{detail}")


class AnswerFailed(RunFailed):
    """The answer of a run is cut, filtered, refused, empty, or does not follow the output schema (`.reason`)."""
