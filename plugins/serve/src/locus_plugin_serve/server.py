"""`serve`: the agent on an address, until the process gets SIGTERM."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import anyio
import uvicorn

from locus import Agent
from locus.core.errors import ConfigError
from locus_plugin_serve.app import ServedAgent, make_app
from locus_plugin_serve.settings import ServeSettings

__all__ = ["serve"]

#: Connections that may wait to be accepted; beyond, the operating system refuses them.
_BACKLOG = 256

#: Seconds that responses get to end once all runs have.
_LAST = 5


class _Server(uvicorn.Server):
    """A server whose first signal drains the runs, and whose second one leaves at once."""

    def __init__(
        self, config: uvicorn.Config, app: ServedAgent, leave: anyio.Event, started: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._app, self._leave, self._started = app, leave, started
        self._signals = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal. Nothing else may be done here: it comes between any two instructions."""
        self._signals += 1
        if self._signals > 1:
            os._exit(128 + sig)

    async def on_tick(self, counter: int) -> bool:
        """Whether to leave; asked ten times a second, from when it answers."""
        if counter == 0:
            self._started()
        if self._signals or self._leave.is_set():
            self._app.leave.set()
        if self._app.left.is_set():
            self.should_exit = True
        return bool(await super().on_tick(counter))


async def serve(
    agent: Agent[Any, Any],
    settings: ServeSettings | None = None,
    *,
    deps: Any = None,
    started: Callable[[str], object] | None = None,
    leave: anyio.Event | None = None,
) -> None:
    """Serve an agent until SIGTERM or Ctrl-C. It needs asyncio.

    The first signal drains: requests for new turns are refused, runs get ``drain`` seconds to end, and those that have
    not are left open on the journal. A second one leaves at once, as a crash does.

    Args:
        agent: an agent with a name and a checkpointer that keeps history.
        settings: where, for whom, how much; None = the defaults.
        deps: what tools get as ``ctx.deps``.
        started: called with the address, once the server answers.
        leave: set it to have the server leave as at a signal; for a thread that is not the main one and gets none.

    Raises:
        ConfigError: the agent cannot be served, or not there.
    """
    settings = settings or ServeSettings()
    settings.check_bind()
    app = make_app(agent, settings, deps=deps)
    listening = _listen(settings.host, settings.port)
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="warning",
        access_log=False,  # paths have the names of threads
        server_header=False,
        proxy_headers=False,
        http="httptools",
        ws="none",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_LAST,
    )
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{name}:{listening.getsockname()[1]}"

    def announce() -> None:
        if started is not None:
            started(url)

    try:
        await _Server(config, app, leave or anyio.Event(), announce).serve(sockets=[listening])
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as e:
        made.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {e}") from e
    return made
