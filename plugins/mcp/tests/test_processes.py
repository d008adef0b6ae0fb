"""Programs that end in the middle of a run: their servers end with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .kit import alive, log_of

_PROGRAM = """
import sys
import anyio
sys.path[:0] = {path!r}
from mcp_tests.kit import raw
from locus import Agent
from locus_testkit import ScriptedModel, call

async def main():
    servers = {{"raw": raw({{"log": {log!r}}})}}
    await Agent(ScriptedModel(call("raw__slow"), "done"), mcp={{"servers": servers}}).run("go")

anyio.run(main, backend={backend!r})
"""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("how", "backend"), [(signal.SIGINT, "asyncio"), (signal.SIGINT, "trio"), (signal.SIGKILL, "asyncio")]
)
def test_no_server_outlives_the_program_that_started_it(how: signal.Signals, backend: str, tmp_path: Path) -> None:
    (tmp_path / "mcp_tests").symlink_to(Path(__file__).parent)
    log = tmp_path / "log"
    code = _PROGRAM.format(path=[str(tmp_path), *filter(None, sys.path)], log=str(log), backend=backend)
    program = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        _until(lambda: any(line.startswith("call slow") for line in log_of(log)))
        server = int(log_of(log)[0].split()[1])
        os.kill(program.pid, how)
        program.wait(60)
    finally:
        program.kill()
        program.wait()

    _until(lambda: not alive(server))
    assert log_of(log)[-1] == "end"


def _until(holds: object) -> None:
    end = time.monotonic() + 60
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
