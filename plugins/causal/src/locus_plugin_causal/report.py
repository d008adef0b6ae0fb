"""`CausalReport`: what a run's result says about causes."""

from __future__ import annotations

from attrs import frozen

from locus_plugin_causal.chain import CausalChain
from locus_plugin_causal.graph import Conflict

__all__ = ["CausalReport"]


@frozen(kw_only=True)
class CausalReport:
    """``result.reports["causal"]``: the whole run, calls of earlier segments included.

    Args:
        chain: the graph.
        conflicts: every cycle and every contradiction in it.
        hypothesis: the label of the first root cause, else of the first node; ``""`` for an empty graph.
        confidence: that root cause's; 0.5 without one, 0.0 for an empty graph.
        inferences: how often a model was asked with success, in this call of ``run`` or ``resume``.
        failures: how often it failed.
        errors: why, the last five.
    """

    chain: CausalChain = CausalChain()
    conflicts: tuple[Conflict, ...] = ()
    hypothesis: str = ""
    confidence: float = 0.0
    inferences: int = 0
    failures: int = 0
    errors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, chain: CausalChain, *, inferences: int = 0, failures: int = 0, errors: tuple[str, ...] = ()
    ) -> CausalReport:
        """The report on a chain."""
        roots, first = chain.root_causes, chain.hypothesis
        return cls(
            chain=chain,
            conflicts=chain.conflicts,
            hypothesis="" if first is None else first.label,
            confidence=roots[0].confidence if roots else 0.0 if first is None else 0.5,
            inferences=inferences,
            failures=failures,
            errors=errors,
        )
