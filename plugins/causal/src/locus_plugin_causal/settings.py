"""The settings of the plugin: the table ``[plugins.causal]``."""

from __future__ import annotations

from attrs import field, frozen

from locus_kit.validators import integer, optional, seconds

__all__ = ["CausalSettings"]


@frozen(kw_only=True)
class CausalSettings:
    """Where the graph comes from.

    Args:
        infer: also ask a model what caused what; by default the graph comes from the trace alone, by rules.
        interval: reflect after every so many iterations; None = only after a tool error and when the calls go in
            circles, which are reasons in any case.
        model: who infers, ``"provider:model"``; None = the agent's own model.
        timeout: seconds after which its answer is no longer waited for; None = as long as the run may take.
        max_tokens: of one answer of it; None = the provider's default.
        max_nodes: how many nodes it may propose.
        window: how many of the last calls it is shown.
        max_chars: how many characters of each text it is shown.

    Raises:
        ValueError: a number is out of range.
    """

    infer: bool = False
    interval: int | None = field(default=None, validator=optional(integer(1)))
    model: str | None = None
    timeout: float | None = field(default=60.0, validator=optional(seconds))
    max_tokens: int | None = field(default=None, validator=optional(integer(1)))
    max_nodes: int = field(default=10, validator=integer(1))
    window: int = field(default=20, validator=integer(1))
    max_chars: int = field(default=500, validator=integer(50))
