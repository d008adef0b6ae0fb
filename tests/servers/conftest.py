"""The real server of these tests, and Ollama's protocol in front of it: started once, stopped by their own handles."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.servers.real import MODEL, RealServer

pytest.register_assert_rewrite("tests.servers.promises")


@pytest.fixture
def anyio_backend() -> str:
    """What a server answers does not depend on it, and the plugins' own tests run on both."""
    return "asyncio"


@pytest.fixture(scope="session")
def real_server() -> Iterator[RealServer]:
    key = f"sk-{secrets.token_hex(16)}"
    with (
        _serving("tests.servers.llamacpp", key) as url,
        _serving("plugins.ollama.tests.front", url, key, MODEL) as front,
    ):
        yield RealServer(url, key, ollama=front)


@contextmanager
def _serving(module: str, *arguments: str) -> Iterator[str]:
    """Run a program that prints its address and serves until its input ends; gives the address."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), f"{module} said {url!r}"
            yield url
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
