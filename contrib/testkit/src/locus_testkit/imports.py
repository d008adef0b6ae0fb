"""What an import loads, measured in a new interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

__all__ = ["modules_imported_by"]

_PROBE = """
import importlib, sys
import locus.plugin
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(*sorted(set(sys.modules) - before))
"""


def modules_imported_by(module: str) -> frozenset[str]:
    """The modules that an import loads, itself included, without those of `locus.plugin`, which every plugin needs.

    Args:
        module: what is imported, by its full name.

    Raises:
        ImportError: the import failed; the text is the interpreter's output.
    """
    done = subprocess.run(  # noqa: S603  # this interpreter, on a constant program
        [sys.executable, "-c", _PROBE, module],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ImportError(f"{module} cannot be imported: {done.stderr}", name=module)
    return frozenset(done.stdout.split())
