"""A workflow whose step fails until there is a file ``mended``, and then waits for a file ``gate``."""

import time
from pathlib import Path
from typing import Any

from locus_plugin_workflow import Workflow

__all__ = ["wf"]


def look(ctx: Any) -> Any:
    """The second iteration is the one that fails."""
    if ctx.iteration == 0:
        ctx.checkpoint(ctx.input())
        return ctx.continue_("half")
    with Path("began").open("a", encoding="utf-8") as file:
        file.write(f"{ctx.load_checkpoint()} {ctx.input()}\n")
    if not Path("mended").exists():
        raise OSError("the printer is on fire")
    while not Path("gate").exists():
        time.sleep(0.01)
    return ctx.complete("whole")


wf = Workflow("retrying")
wf.agent_loop("look", look).with_max_iterations(2)
