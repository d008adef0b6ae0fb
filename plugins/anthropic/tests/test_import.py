"""What choosing this provider costs before the first request."""

from __future__ import annotations

import os
import subprocess
import sys

_COUNT = "import sys; before = len(sys.modules); import {}; print(len(sys.modules) - before)"


def _modules(name: str) -> int:
    """How many modules an import brings into a new interpreter."""
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", _COUNT.format(name)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_import_brings_less_than_twice_an_http_client() -> None:
    assert _modules("locus_plugin_anthropic.model") < 2 * _modules("httpx2")
