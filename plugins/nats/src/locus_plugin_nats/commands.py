"""``locus nats``: a server for development."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import click

from locus.core.errors import ConfigError
from locus.plugin import Lazy
from locus_plugin_nats.dev import DevServer

__all__ = ["nats"]

#: What the command line offers to plugins with commands; it is there when one of these runs.
cli: Any = Lazy("locus.cli")


@click.group(short_help="A NATS server for development.")
def nats() -> None:
    """A NATS server for development."""


@nats.command(short_help="Start a NATS server with JetStream on this machine.")
@click.option("--dir", "folder", type=click.Path(file_okay=False), default=".locus/nats", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=4222, show_default=True, help="0 = a free port.")
@click.option("--sync/--no-sync", default=False, help="Sync each write to the disk, so that a power cut takes nothing.")
def dev(folder: str, port: int, *, sync: bool) -> None:
    """Start a NATS server with JetStream, on this machine only and without a password, until Ctrl-C.

    If this command is killed, the server ends as well on Linux. Elsewhere it goes on, and is ended by its process id,
    which is in the name of the file nats-server_PID.ports in --dir.
    """
    server = DevServer(Path(folder), port, sync=sync, follows=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        server.start()
    except ConfigError as e:
        raise click.ClickException(str(e)) from None
    try:
        cli.print_text(f"{server.url} (data in {server.folder}; Ctrl-C ends it)\n")
        while not ended.wait(0.2):
            if server.process is not None and server.process.poll() is not None:
                raise click.ClickException(f"nats-server ended; see {server.folder / 'nats-server.log'}")
    finally:
        server.stop()
