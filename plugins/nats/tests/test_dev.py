"""What can go wrong when a development server is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from locus.core.errors import ConfigError
from locus_plugin_nats import DevServer


def test_a_folder_is_used_by_one_server_at_a_time(tmp_path: Path) -> None:
    with DevServer(tmp_path) as first:
        assert first.process is not None
        with pytest.raises(ConfigError, match=rf"used by another nats-server \(pid {first.process.pid}\); use that"):
            DevServer(tmp_path).start()
    with DevServer(tmp_path) as again:  # the lock ends with the server
        again.kill()
        again.start()


def test_a_server_that_outlives_its_program_keeps_its_folder(tmp_path: Path) -> None:
    left = DevServer(tmp_path)
    left.start()
    process, left.process = left.process, None
    assert process is not None
    del left
    try:
        with pytest.raises(ConfigError, match=str(process.pid)):
            DevServer(tmp_path).start()
    finally:
        process.kill()
        process.wait()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"^port {port} is used by another program; stop that program, or"):
            DevServer(tmp_path, port).start()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ConfigError, match="file/data: Not a directory; choose a folder for the data"):
        DevServer(tmp_path / "file" / "data").start()
