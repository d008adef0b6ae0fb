"""The real server of these tests: started once, stopped by its own handle."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.servers.real import RealServer


@pytest.fixture(scope="session")
def real_server() -> Iterator[RealServer]:
    key = f"sk-{secrets.token_hex(16)}"
    command = [sys.executable, "-m", "tests.servers.llamacpp", key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), f"the server said {url!r}"
            yield RealServer(url, key)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
