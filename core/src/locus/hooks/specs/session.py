"""Session: what a plugin holds open for as long as a run is under way, and the tools that come of it.

A plain function that gives an async context manager, such as one made with `contextlib.asynccontextmanager`. It is
entered before a segment's first event and left after its last one, both in a task of its own: it may hold a task group
open, and what fails or hangs in it later is reported and does not touch the run. The run's own errors are not raised in
it. What fails while it opens is raised by the run, which then has not begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.hooks.context import RunContext
    from locus.tools.schematool import SchemaTool

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_run_session(run: RunContext) -> AbstractAsyncContextManager[Iterable[SchemaTool] | None] | None:
    """Open what a run needs; what the context manager gives are tools for this run, made with `schema_tool`, or None.

    The list is the run's from then on and stands in its state: the model is told the same in each iteration, and after
    a resume, wherever that happens. A resumed run opens a session as well; its tools are matched with the list by their
    ``origin``, and of one that is not there any more each call is an error. A replay opens none.
    """
