"""When this is imported, the server compares nothing for a store, which does not look whether a claim was lost.

A judge that does not notice is worth nothing.
"""

from __future__ import annotations

from typing import Any

from locus_plugin_nats import session


async def _look_after(own: Any) -> None:
    """Find no lost claim."""


_session: Any = session
_session._FENCE, _session._FENCE_SUBJECT = "X-Nothing", "X-Nothing-Either"
_session.Session.look_after = _look_after
