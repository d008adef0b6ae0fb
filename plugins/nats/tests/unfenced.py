"""The shop, with a store for which the server compares nothing, and which does not look whether a claim was lost.

A judge that does not notice is worth nothing.
"""

from typing import Any

from shop import many  # type: ignore[import-not-found]  # a program in the working directory

from locus_plugin_nats import session

__all__ = ["many"]


async def _look_after(own: Any) -> None:
    """Find no lost claim."""


_session: Any = session
_session._FENCE, _session._FENCE_SUBJECT = "X-Nothing", "X-Nothing-Either"
_session.Session.look_after = _look_after
