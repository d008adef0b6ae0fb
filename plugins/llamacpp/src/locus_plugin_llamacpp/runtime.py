"""Starting llama.cpp in the process of `worker`: the settings that decide whether it is usable, and its traps.

- libgomp reads two environment variables when it is loaded; without them its threads spin, and on a
  busy machine generation is fifty times slower.
- The server always opens a socket, by default a TCP port without a key. Here it is a Unix socket in a
  private folder, with a random key, and the folder is removed as soon as the server has bound it: no one
  can connect, and nothing is left behind, not even by a process that is killed.
- ``n_ctx`` is divided by the number of slots.
- A server that is ended before its own loop has begun never ends, and its destructor holds the interpreter's lock
  meanwhile: a process would hang at its exit. So a new server answers one token before it is handed out.
- The binding holds the interpreter's lock while a file is loaded, so nothing else in the process runs meanwhile: see
  `worker_process`. What can be done before is done before: the file is read into the system's cache, so that a slow
  disk shows as progress; and its warm-up is left to that first token.
- A batch is what a cancellation has to wait for: 128 tokens process as fast as 2048 and end sooner.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from locus_plugin_llamacpp.errors import EngineFailed
from locus_plugin_llamacpp.lazy import XLLAMACPP, resolve

__all__ = ["EngineOptions", "cores", "read_ahead", "start"]

_BATCH = 128
_BLOCK = 1 << 22  # bytes
_PROMPT_CACHE_MIB = 1024  # conversations that wait for their next turn; 1.5B: about 37,000 tokens
_FIRST = {"prompt": ".", "n_predict": 1, "temperature": 0}
_SOCKET_PATH_LIMIT = 100  # bytes; the system's own limit is 104 or 108


@frozen(kw_only=True)
class EngineOptions:
    """What tells two engines of the same file apart.

    Args:
        n_ctx: tokens of the context window of each request.
        threads: threads for generation; None = all cores but one. Prompts are processed on one more.
        slots: requests processed at a time.
        template: a Jinja chat template; None = the one in the file.
    """

    n_ctx: int = 8192
    threads: int | None = None
    slots: int = 1
    template: str | None = None


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_ahead(path: Path, check: Callable[[], None]) -> None:
    """Let the system's cache have the file, as far as there is memory. Blocking: call it in a worker thread.

    Args:
        path: the file; one that cannot be read is left to `start`, which says so.
        check: called between blocks; may raise to give up.
    """
    block = bytearray(_BLOCK)
    with suppress(OSError), path.open("rb", buffering=0) as file:
        while file.readinto(block):
            check()


def start(path: Path, options: EngineOptions) -> Any:
    """Load a file in this process and start its server. For seconds no other thread runs: see `worker_process`.

    Raises:
        EngineFailed: the runtime cannot be imported, or it refuses the file.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    try:
        runtime = resolve(XLLAMACPP)
    except ImportError as error:
        raise EngineFailed(f"xllamacpp cannot be imported ({error}); run: pip install xllamacpp") from error
    folder = _private_folder()
    try:
        server = runtime.Server(_parameters(runtime, path, options, folder))
        server.handle_completions(_FIRST)
        return server
    except RuntimeError as error:
        raise EngineFailed(
            f"llama.cpp cannot load {path} ({error}); the file may be damaged, of an architecture it does not know, "
            "or too large for the memory that is free"
        ) from error
    finally:
        shutil.rmtree(folder)


def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="locus-"))  # mode 0700
    if len(os.fsencode(folder)) > _SOCKET_PATH_LIMIT - len("/l.sock"):
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="locus-", dir="/tmp"))
    return folder


def _parameters(runtime: Any, path: Path, options: EngineOptions, folder: Path) -> Any:
    made = runtime.CommonParams()
    made.model.path = str(path)
    made.model_alias = path.stem  # else answers carry the path of the file
    made.n_ctx = options.n_ctx * options.slots
    made.n_parallel = options.slots
    made.n_batch = made.n_ubatch = _BATCH
    made.cache_ram_mib = _PROMPT_CACHE_MIB
    # Generation waits for memory, prompts for arithmetic: leaving a core free costs only prompts.
    made.cpuparams.n_threads = options.threads or max(1, cores() - 1)
    made.cpuparams_batch.n_threads = options.threads or cores()
    if options.template is not None:
        made.chat_template = options.template
    made.verbosity = 0
    made.warmup = False  # the first request does it, without holding the interpreter's lock
    made.ui = made.endpoint_slots = False
    made.cors_origins = ""
    made.api_keys = [secrets.token_urlsafe(32)]
    made.hostnames = [str(folder / "l.sock")]
    return made
