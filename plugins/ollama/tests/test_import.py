"""Choosing the provider loads its own stack and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

_PROBE = "import sys; import {}; print(len(sys.modules)); print(*sys.modules)"


def loaded(*modules: str) -> tuple[int, set[str]]:
    done = subprocess.run(  # this interpreter, on a constant program
        [sys.executable, "-c", _PROBE.format(", ".join(modules))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    count, names = done.stdout.splitlines()
    return int(count), {name.partition(".")[0] for name in names.split()}


def test_the_provider_loads_less_than_twice_what_its_http_client_loads() -> None:
    count, packages = loaded("locus_plugin_ollama.model")
    client, _ = loaded("httpx2")

    assert count < 2 * client
    assert packages.isdisjoint({"ollama", "httpx", "pydantic", "openai", "trio"})


def test_settings_load_no_http_client() -> None:
    _, packages = loaded("locus_plugin_ollama.settings")

    assert "httpx2" not in packages
