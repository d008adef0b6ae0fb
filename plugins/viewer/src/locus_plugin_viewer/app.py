"""The application: which address is answered by what."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from locus.core.errors import LocusError, NothingToResume, StoreError
from locus_plugin_viewer.actions import Actions
from locus_plugin_viewer.comparing import Comparing
from locus_plugin_viewer.reading import Reading
from locus_plugin_viewer.rendering import Pages
from locus_plugin_viewer.security import LOOPBACK, Gate
from locus_plugin_viewer.viewer import Viewer

__all__ = ["make_app"]

#: Seconds that runs which were resumed from a page have to come to a safe point when the server leaves.
_DRAIN = 5.0


def make_app(viewer: Viewer, *, token: str, hosts: Collection[str] = LOOPBACK) -> ASGIApp:
    """The pages of a viewer, as an ASGI application for one server process.

    Args:
        viewer: what they are about.
        token: what the first request must bring, as ``/?token=``; it is good once.
        hosts: the names that the server is known by, without ports.
    """
    pages = Pages(viewer)
    reading, comparing, actions = Reading(viewer, pages), Comparing(viewer, pages), Actions(viewer)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            viewer.tasks = tasks
            try:
                yield
            finally:
                viewer.tasks = None
                # What was resumed from a page is left where any process can go on with it.
                if viewer.agent is not None:
                    viewer.agent.drain()
                tasks.cancel_scope.deadline = anyio.current_time() + _DRAIN

    async def show_error(request: Request, error: Exception) -> Response:
        status = 404 if isinstance(error, NothingToResume) else 503 if isinstance(error, StoreError) else 400
        return pages.page("error.html", status=status, kind=type(error).__name__, text=str(error))

    app = Starlette(
        routes=[
            Route("/", reading.threads),
            Route("/thread", reading.thread),
            Route("/thread/window", reading.window),
            Route("/thread/events", reading.events),
            Route("/thread/state", reading.state),
            Route("/thread/request", reading.request),
            Route("/thread/entry", reading.entry),
            Route("/thread/status", reading.status),
            Route("/thread/graph", reading.graph),
            Route("/thread/export", comparing.export),
            Route("/thread/what-if", comparing.what_if),
            Route("/thread/replay", comparing.replay),
            Route("/diff", comparing.diff),
            Route("/thread/answer", actions.answer, methods=["POST"]),
            Route("/thread/cancel", actions.cancel, methods=["POST"]),
            Route("/thread/resume", actions.resume, methods=["POST"]),
            Route("/thread/fork", actions.fork, methods=["POST"]),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        exception_handlers={LocusError: show_error},
        lifespan=lifespan,
    )
    return Gate(app, token=token, hosts=hosts, read_only=viewer.read_only)
