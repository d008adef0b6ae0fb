"""The server: one socket, bound here so that its port is known, and a loop that ends with Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from locus.core.errors import InputError
from locus_plugin_viewer.app import make_app
from locus_plugin_viewer.security import LOOPBACK
from locus_plugin_viewer.viewer import Viewer

__all__ = ["serve"]

#: Seconds that open connections have when the server leaves: a page that is followed never ends by itself.
_GRACE = 2


class _Server(uvicorn.Server):
    """A server whose signals are handled by the command, and whose pages that are followed end with it."""

    def __init__(self, config: uvicorn.Config, viewer: Viewer) -> None:
        super().__init__(config)
        self._viewer = viewer

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave."""
        self._viewer.is_closing = True
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: the address is not this machine's, or is taken.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as e:
        raise InputError(
            f"cannot serve at {host}:{port}: {e.strerror or e}; choose another with --host or --port"
        ) from e


async def serve(
    viewer: Viewer, *, host: str, port: int, names: tuple[str, ...], on_ready: Callable[[str], object]
) -> None:
    """Serve the pages until Ctrl-C or SIGTERM.

    Args:
        viewer: what they are about.
        host: the address to bind to.
        port: 0 = any that is free.
        names: what the server is called beside the names of this machine's loopback device and ``host``.
        on_ready: gets the address to open, with the token in it.

    Raises:
        InputError: the address cannot be bound.
    """
    token = secrets.token_urlsafe(24)
    app = make_app(viewer, token=token, hosts={*LOOPBACK, host, *names})
    with bind(host, port) as listening:
        number = listening.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would write the token
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        server = _Server(config, viewer)
        shown = f"[{host}]" if ":" in host else host
        with _leaving_on_signals(server):
            on_ready(f"http://{shown}:{number}/?token={token}")
            await server.serve([listening])


@contextlib.contextmanager
def _leaving_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Leave on the first SIGTERM or Ctrl-C, at once on the second."""

    def hear(number: int, frame: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
