"""Register: what a plugin contributes to an agent.

Called once, synchronously, while the agent is built. A plugin that raises here, or returns what is not
asked for, is not activated at all and reported. None means "nothing".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.events import Event
    from locus.core.reflect import ReflectPolicy
    from locus.models.prices import PriceSource

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_register_tools() -> Iterable[object] | None:
    """Tools that the agent has beside its own, made with `locus.tools.definition`."""


@spec(_SINCE)
def locus_register_events() -> Iterable[type[Event]] | None:
    """Event classes of the plugin; ``locus_on_<type>`` exists for each of them from then on."""


@spec(_SINCE)
def locus_register_conditions() -> Iterable[type] | None:
    """Classes of termination conditions, so that a saved condition can be read back."""


@spec(_SINCE)
def locus_register_commands() -> Iterable[object] | None:
    """Commands for the command line; only the command line asks for them."""


@spec(_SINCE)
def locus_register_reflect_policies() -> Iterable[ReflectPolicy] | None:
    """Policies that say when Reflect runs: pure functions from the state to a reason, or to None.

    They become part of the router, which must stay pure: no clock, no I/O, no memory of earlier calls. The
    policies of all plugins are or-ed, in order, and the first reason is the one reported. Without a policy
    Reflect is never entered.
    """


@spec(_SINCE)
def locus_register_prices() -> Iterable[PriceSource] | None:
    """Functions that know what model calls cost: ``(model, answered, usage, at)`` to dollars, or to None.

    ``answered`` is the model that answered, as the provider names it, or ``""``. They are asked after each call whose
    provider does not say itself what it cost, in order, until one knows; then comes the model's own ``price``. Also
    once, with a usage of two tokens, when an agent with a ``CostLimit`` is built. One that raises knows nothing, and
    is reported.
    """
