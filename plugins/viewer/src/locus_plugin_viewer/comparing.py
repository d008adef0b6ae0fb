"""Pages of time travel: two threads side by side, the code against the record, another limit, and an export.

Time travel is another distribution; it is used by its names under ``locus.timetravel``.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from locus.core.errors import InputError
from locus.core.termination import MaxIterations, TerminationCondition, TokenLimit
from locus.plugin import Lazy
from locus.schema import safe_repr
from locus_plugin_viewer.queries import get_id, get_number
from locus_plugin_viewer.rendering import Pages
from locus_plugin_viewer.viewer import Viewer

__all__ = ["Comparing"]

_timetravel: Any = Lazy("locus.timetravel")

#: What a run may be asked about: a limit of iterations, or of tokens.
_LIMITS: dict[str, Any] = {"iterations": MaxIterations, "tokens": TokenLimit}


class Comparing:
    """Answers what compares runs; nothing is written.

    Args:
        viewer: what the pages are about.
        pages: the templates.
    """

    def __init__(self, viewer: Viewer, pages: Pages) -> None:
        self._viewer, self._pages = viewer, pages

    async def diff(self, request: Request) -> Response:
        """Two threads side by side."""
        a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
        if not a or not b:
            raise InputError("expected two threads, as ?a= and ?b=")
        found = await _timetravel.diff_threads(self._viewer.source, a, b)
        return self._pages.page("diff.html", a=a, b=b, diff=found)

    async def replay(self, request: Request) -> Response:
        """Whether the agent's code of today does what the journal says."""
        thread_id, agent = get_id(request), self._viewer.agent
        if agent is None:
            raise InputError("no agent is known here; start `locus view FILE:AGENT` to replay its runs")
        found = await _timetravel.replay(self._viewer.source, thread_id)
        first = found.difference
        recorded = "" if first is None else safe_repr(first.recorded, 2_000)
        actual = "" if first is None else safe_repr(first.actual, 2_000)
        return self._pages.page("_replay.html", replay=found, first=first, recorded=recorded, actual=actual)

    async def what_if(self, request: Request) -> Response:
        """Where the newest run would have ended with another limit."""
        thread_id, limit = get_id(request), request.query_params.get("limit", "")
        value = get_number(request, "value") or 0
        if limit not in _LIMITS or value < 1:
            raise InputError(f"expected a limit of {' or '.join(_LIMITS)}, 1 or more, got {limit!r:.20} {value}")
        condition: TerminationCondition = _LIMITS[limit](value)
        found = await _timetravel.what_if(self._viewer.source, thread_id, termination=condition)
        return self._pages.page("_what_if.html", found=found, limit=limit, value=value)

    async def export(self, request: Request) -> Response:
        """The thread as a file that ``locus threads import`` reads: as it is on record, nothing hidden."""
        thread_id = get_id(request)
        lines = await _timetravel.export_thread(self._viewer.source, thread_id)
        name = re.sub(r"[^\w.-]+", "-", thread_id, flags=re.ASCII)[:80] or "thread"
        headers = {"content-disposition": f'attachment; filename="{name}.jsonl"'}
        return StreamingResponse((f"{line}\n" for line in lines), media_type="application/jsonl", headers=headers)
