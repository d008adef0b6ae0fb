"""A workflow whose step blocks the event loop when it runs first, until a test creates the file ``gate``."""

import os
import time
from pathlib import Path
from typing import Any

from locus_plugin_workflow import Workflow

__all__ = ["wf"]


def _block() -> None:
    is_first = not Path("runs").exists()
    with Path("runs").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    while is_first and not Path("gate").exists():
        time.sleep(0.01)


async def hang(ctx: Any) -> Any:
    """Block the loop: it is a coroutine, and never waits."""
    _block()
    return ctx.complete(os.getpid())


wf = Workflow("stuck")
wf.step("hang", hang)
