"""The program that llama.cpp runs in: it loads one file, then answers requests. Run by `worker_process`.

Both directions are lines of JSON. The first line that comes in names the file; then each request has a number, and
each chunk of its answer waits for a line that says whether to go on: a reader that is slow slows the generation, and
one that is gone stops it at once. The program ends when its input does, however its parent ended.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path
from typing import Any, BinaryIO

from locus_plugin_llamacpp.errors import EngineFailed
from locus_plugin_llamacpp.runtime import EngineOptions, start

__all__ = ["main"]


class _Answers:
    """Writes lines, and keeps what is said to each request that is under way."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._writing = threading.Lock()
        self.says: dict[int, queue.SimpleQueue[bool]] = {}

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        line = json.dumps(message, default=str).encode() + b"\n"
        with self._writing:
            self._out.write(line)
            self._out.flush()

    def answer(self, server: Any, number: int, body: dict[str, Any]) -> None:
        """Answer one request."""
        says = self.says[number]

        def take(chunk: dict[str, Any]) -> bool:
            self.send({"id": number, "chunk": chunk})
            return says.get()

        try:
            done = {"reply": server.handle_chat_completions(body, take)}
        except Exception as error:  # noqa: BLE001 - raised in the other process
            done = {"error": str(error), "invalid": isinstance(error, ValueError)}
        del self.says[number]
        self.send({"id": number, **done})


def main() -> None:
    """Load and answer until the input ends."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Whatever else reads or writes in this process must not do it on the lines.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    answers = _Answers(outgoing)
    wanted = json.loads(incoming.readline())
    try:
        server = start(Path(wanted["path"]), EngineOptions(**wanted["options"]))
    except EngineFailed as error:
        answers.send({"failed": str(error)})
        os._exit(1)
    answers.send({"ready": True})
    for line in incoming:
        message = json.loads(line)
        number = message["id"]
        if "body" in message:
            answers.says[number] = queue.SimpleQueue()
            threading.Thread(target=answers.answer, args=(server, number, message["body"]), daemon=True).start()
        else:
            answers.says[number].put(message["stop"])
    # Without the destructors of a server that may be at work for a process that is gone.
    os._exit(0)
