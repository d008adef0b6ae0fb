"""Is the package `locus` that Python finds the kernel? Other distributions on the registries install one, too.

Imports nothing of the kernel: it has to work exactly when that cannot be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

__all__ = ["explain_missing_kernel", "find_shadows"]

_PACKAGE = "locus"
_OWNER = "locus-core"


def find_shadows(path: Iterable[str] | None = None) -> list[str]:
    """What else installs, or shadows, the package of the kernel; one sentence each.

    Args:
        path: where to look; ``sys.path`` when None.
    """
    places = list(sys.path if path is None else path)
    return [*_rivals(places), *_shadows(places)]


def explain_missing_kernel() -> str:
    """What to do when the kernel cannot be imported."""
    found = find_shadows()
    if found:
        return "; ".join(found)
    return f"the kernel is missing or damaged: pip install --force-reinstall {_OWNER}"


def _rivals(places: list[str]) -> list[str]:
    names = {
        f"{dist.metadata['Name']} {dist.version}"
        for dist in metadata.distributions(path=places)
        if (dist.metadata["Name"] or "").lower().replace("_", "-") != _OWNER and _installs_it(dist)
    }
    return [
        f"{name} installs a package {_PACKAGE!r}, too, and files of the two overwrite each other: "
        f"pip uninstall {name.partition(' ')[0]}, then pip install --force-reinstall {_OWNER}"
        for name in sorted(names)
    ]


def _installs_it(dist: metadata.Distribution) -> bool:
    if _PACKAGE in (dist.read_text("top_level.txt") or "").split():
        return True
    return any(file.parts[:1] in ((_PACKAGE,), (f"{_PACKAGE}.py",)) for file in dist.files or ())


def _shadows(places: list[str]) -> list[str]:
    """Other folders or files on the path that answer to ``import locus``."""
    spec = find_spec(_PACKAGE)
    used = Path(spec.origin).resolve() if spec is not None and spec.origin else None
    found = []
    for place in dict.fromkeys(places):
        for candidate in (Path(place or ".", _PACKAGE, "__init__.py"), Path(place or ".", f"{_PACKAGE}.py")):
            if candidate.is_file() and candidate.resolve() != used:
                found.append(f"{candidate.resolve()} is a package {_PACKAGE!r} as well (in use: {used}); remove one")
    return found
