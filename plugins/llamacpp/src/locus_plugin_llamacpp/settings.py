"""The settings of the plugin: the table ``[plugins.llamacpp]``."""

from __future__ import annotations

from attrs import field, frozen

from locus_kit.validators import integer, number, optional

__all__ = ["LlamaCppSettings"]


@frozen(kw_only=True)
class LlamaCppSettings:
    """How embedded models are loaded and asked.

    Args:
        n_ctx: tokens of the context window; memory grows with it.
        threads: threads for generation and prompts; None = as many as measured best for this machine.
        slots: requests processed at a time; each costs the memory of one window.
        max_tokens: the most tokens of one answer, where the request does not say.
        temperature: 0.0 (always the likeliest token, repeatable) and up, where the request does not say.
        seed: makes sampling repeatable at a temperature above 0.
        cache_dir: where fetched weights go; None = ``LOCUS_CACHE``, else the platform's cache folder.
        id_guard: let a call be made only with ids that occur in the conversation, where a tool can look them up.
        repeat_guard: refuse a call that was made before in the same user turn, and ask again without it.
        progress: show on standard error how far a packaged model is fetched, the first time.
    """

    n_ctx: int = field(default=8192, validator=integer(256))
    threads: int | None = field(default=None, validator=optional(integer(1)))
    slots: int = field(default=1, validator=integer(1))
    max_tokens: int = field(default=1024, validator=integer(1))
    temperature: float = field(default=0.0, validator=number(0))
    seed: int | None = None
    cache_dir: str | None = None
    id_guard: bool = True
    repeat_guard: bool = True
    progress: bool = True
