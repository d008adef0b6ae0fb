"""llama.cpp's own server on a free port of loopback: it prints its address and serves until its input ends.

``python -m tests.servers.llamacpp KEY`` at the top of a checkout. It speaks OpenAI's two forms and Anthropic's
Messages, and nobody here has written any of it. The chat template is one of our own, for this model
(tests/data/chatml-bare-tools.jinja): with the one in the weights the server finds no tool calls in what it writes.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from tests.servers.real import MODEL, WINDOW

from locus_plugin_llamacpp.weights import find, parse

_TEMPLATE = Path(__file__).resolve().parent.parent / "data" / "chatml-bare-tools.jinja"


def main(key: str) -> None:
    """Serve until the standard input ends."""
    # libgomp reads them when it is loaded: without them its threads spin.
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", GOMP_SPINCOUNT="0")
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(find(parse(MODEL)))
    parameters.model_alias = {MODEL}
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys, parameters.cors_origins = [key], ""
    parameters.n_ctx, parameters.n_parallel = WINDOW, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
    parameters.chat_template = _TEMPLATE.read_text(encoding="utf-8")
    parameters.ui, parameters.verbosity, parameters.endpoint_slots = False, 0, False
    server = xllamacpp.Server(parameters)
    # A server that is ended before its loop has begun never ends: it answers one token first.
    server.handle_completions({"prompt": ".", "n_predict": 1, "temperature": 0})
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
