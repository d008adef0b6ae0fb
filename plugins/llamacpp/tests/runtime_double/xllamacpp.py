"""A double of the binding for another process: the file that it "loads" is JSON, and says what it does."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def CommonParams() -> SimpleNamespace:  # noqa: N802 - the binding's name
    return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    """Does what its file says: ``gate``, ``refuses``, ``chunks``, ``raises``, ``dies``."""

    def __init__(self, parameters: SimpleNamespace) -> None:
        self.script: dict[str, Any] = json.loads(Path(parameters.model.path).read_text())
        os.write(1, b"what a library prints\n")
        if "refuses" in self.script:
            raise RuntimeError(self.script["refuses"])
        if "gate" in self.script:
            # Opening a named pipe waits for its writer. Called like this, with the interpreter's lock held.
            ctypes.PyDLL(None).open(self.script["gate"].encode(), os.O_RDONLY)

    def handle_completions(self, request: object) -> None:
        """The first request."""

    def handle_chat_completions(self, body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> Any:
        if "raises" in self.script:
            raise {"ValueError": ValueError, "RuntimeError": RuntimeError}[self.script["raises"]]("no such thing")
        for chunk in self.script["chunks"] * self.script.get("times", 1):
            if callback(chunk):
                return None
            if "dies" in self.script:
                os.kill(os.getpid(), self.script["dies"])
        return {"usage": len(body)}
