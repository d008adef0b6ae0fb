"""What can go wrong with weights and with the engine, as part of the kernel's exception tree.

ModelError
├── WeightsError            the weights of a model cannot be used (`.model`)
│   ├── WeightsMissing      a distribution or a file is not there (`.missing`, `.install`)
│   ├── WeightsCorrupt      the bytes are not the ones that were pinned (`.expected`, `.actual`)
│   ├── CacheFull           no room for the joined file (`.path`, `.needed`, `.free`)
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
    """A distribution, a file or the hub's client is not installed.

    Args:
        model: the model as it was asked for.
        missing: what is not there.
        install: the command that installs it, or ``""``.
    """

    def __init__(self, model: str, missing: str, install: str = "") -> None:
        self.missing, self.install = missing, install
        super().__init__(model, f"{missing}{'; run: ' if install else ''}{install}")


class WeightsCorrupt(WeightsError):
    """The bytes are not the ones that were pinned; nothing was run on them.

    Args:
        model: the model as it was asked for.
        path: what was hashed: a file, or the folder of the parts.
        expected: the pinned SHA-256, hexadecimal.
        actual: the SHA-256 found.
        remedy: what to do.
    """

    def __init__(self, model: str, path: Path, expected: str, actual: str, remedy: str) -> None:
        self.path, self.expected, self.actual = path, expected, actual
        super().__init__(model, f"{path} has sha256 {actual}, expected {expected}; {remedy}")


class CacheFull(WeightsError):
    """The disk has no room for the joined file.

    Args:
        model: the model as it was asked for.
        path: the folder without room.
        needed: bytes the file takes.
        free: bytes that are free there.
    """

    def __init__(self, model: str, path: Path, needed: int, free: int) -> None:
        self.path, self.needed, self.free = path, needed, free
        super().__init__(
            model,
            f"{path} has {free} bytes free, {needed} are needed; make room, or set LOCUS_CACHE to a folder elsewhere",
            retryable=True,
        )


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
