"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["VerifierEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class VerifierEvent(Event):
    """A claim was checked.

    Args:
        claim: ``"answer"``, or the name of the terminal tool.
        verdict: ``"verified"``, ``"unverified"`` or ``"unchecked"``.
        reason: what is missing, or ``""``.
        failure: why the check itself could not be made, or None.
        refused: whether the claim was sent back; one that is not verified is accepted when no refusals are left.
    """

    claim: str = ""
    verdict: str = ""
    reason: str = ""
    failure: str | None = None
    refused: bool = False
