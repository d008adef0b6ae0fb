"""Compat paths: fixed import paths for names that live in plugins.

``from locus.hooks.builtin import X`` and ``import locus.reasoning.y`` are written in programs that do not care
which distribution has X. The packages behind these paths have no names of their own: names are looked up among
what the manifests of the installed plugins offer under that path, and imported on first use. Nothing else can be
imported through them. A package becomes a compat path by calling `forward_names`, and a module that the kernel does
not have, anywhere below its package, by being offered; the paths are not listed anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, MutableSequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from locus.core.errors import PluginLoadError, closest
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import load

_KERNEL = __name__.partition(".")[0]

#: The packages that are compat paths.
_PACKAGES: set[str] = set()


def forward_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package a compat path: its ``__getattr__`` and its ``__dir__``.

    Modules below the package exist wherever an installed plugin offers names in them.

    Args:
        package: the package's own ``__name__``.
    """
    _PACKAGES.add(package)

    def look_up(name: str) -> Any:
        if name == "__all__":  # for `import *`, which would import nothing otherwise
            return offered_names()
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        offers = _offers()
        mine = [(plugin, to) for plugin, path, offered, to in offers if path == package and offered == name]
        if not mine:
            raise AttributeError(_describe_missing(package, name, offers))
        if len(mine) > 1:
            rivals = " and ".join(sorted(plugin for plugin, _ in mine))
            raise ImportError(f"{package}.{name} is offered by more than one plugin: {rivals}; uninstall one")
        try:
            found = load(*mine[0])
        except PluginLoadError as e:
            raise ImportError(f"cannot import {name!r} from {package!r}: {e}", name=package) from e
        setattr(sys.modules[package], name, found)
        return found

    def offered_names() -> list[str]:
        return sorted({offered for _, path, offered, _ in _offers() if path == package})

    def names() -> list[str]:
        return sorted({*sys.modules[package].__dict__, *offered_names()})

    return look_up, names


def find_module(fullname: str) -> ModuleSpec | None:
    """The spec of a module below the kernel's package that the kernel does not have, or None.

    Args:
        fullname: such as ``"locus.graphs"``.

    Raises:
        ImportError: no installed plugin offers names under it, where no other module can. A plain one: of a
            ModuleNotFoundError, ``from package import name`` would swallow the text.
    """
    parent, _, name = fullname.rpartition(".")
    # Names of modules are written in lower case: a class that is missing is not a missing plugin.
    if name.startswith("_") or not (name.islower() or parent in _PACKAGES):
        return None
    offers = _offers()
    if any(_is_within(path, (fullname,)) for _, path, _, _ in offers):
        return ModuleSpec(fullname, _Loader(), origin="the installed plugins", is_package=True)
    if parent == _KERNEL or parent in _PACKAGES:
        raise ImportError(_describe_missing(parent, name, offers), name=fullname)
    return None


class _Loader(Loader):
    """Makes a module whose names are looked up like those of its package."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that Python makes by default."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Make it a compat path like its package."""
        look_up, names = forward_names(module.__name__)
        module.__doc__ = f"What the installed plugins offer under {module.__name__}."
        module.__dict__.update(__getattr__=look_up, __dir__=names)


Offer = tuple[str, str, str, str]


def _offers() -> list[Offer]:
    """Everything offered under a compat path: plugin, path, name, reference."""
    # A fresh catalogue: a name is looked up once, and what was installed since the last one is seen.
    offers = []
    for manifest in Catalogue().manifests():
        for offered, reference in manifest.compat_paths.items():
            path, _, name = offered.partition(":")
            if _is_within(path, _PACKAGES) or not _is_of_kernel(path):
                offers.append((manifest.name, path, name, reference))
    return offers


def _is_of_kernel(path: str) -> bool:
    """Whether the kernel has a module of that name, or the path is not below its package."""
    package, *parts = path.split(".")
    found = package
    location: MutableSequence[str] = sys.modules[_KERNEL].__path__
    for part in parts if package == _KERNEL else ():
        found = f"{found}.{part}"
        spec = PathFinder.find_spec(found, location)
        if spec is None:
            return False
        location = spec.submodule_search_locations or []
    return True


def _is_within(path: str, packages: Iterable[str]) -> bool:
    return any(path == package or path.startswith(f"{package}.") for package in packages)


def _describe_missing(package: str, name: str, offers: list[Offer]) -> str:
    """What is missing, the nearest name that is offered, and how names get there."""
    text = f"cannot import {name!r} from {package!r}: no installed plugin offers it"
    by_name = {offered: f"{path}.{offered} of plugin {plugin!r}" for plugin, path, offered, _ in offers}
    by_name |= {path.rpartition(".")[2]: f"{path} of plugin {plugin!r}" for plugin, path, _, _ in offers}
    near = closest(name, by_name)
    if near:
        text += f"; the nearest is {by_name[near]}"
    elif offers:
        text += f"; these plugins offer names: {', '.join(sorted({plugin for plugin, *_ in offers}))}"
    broken = [r.name for r in Catalogue().status() if r.status != "available"]
    if broken:
        text += f"; these are installed and cannot be read: {', '.join(broken)} (see locus plugins)"
    return f"{text}. Names get there from plugins"
