"""`Catalogue`: what is installed. It lists names without loading anything, and loads one manifest at a time.

A broken plugin is an entry with an error, never an exception for a program that does not use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field

from locus.core.errors import PluginError, PluginIncompatible, PluginLoadError, UnknownName, closest
from locus.core.frozen import EMPTY, frozen
from locus.core.lazy import Lazy
from locus.plugins.manifest import API, Plugin, load, resolve
from locus.plugins.report import PluginReport

if TYPE_CHECKING:
    import traceback
else:
    traceback = Lazy("traceback")

__all__ = ["GROUP", "Catalogue", "pip_hint"]

#: The group of entry points; the name of each is the plugin's name.
GROUP = "locus.plugins"

#: How near to an installed name a slip of it is: one letter or two. The names of two providers may well be less
#: far apart than what `closest` suggests.
_SLIP = 0.75


def pip_hint(name: str, known: Iterable[str] = ()) -> str:
    """How a plugin of that name most likely gets installed.

    Args:
        name: as it was written.
        known: what it may have been meant to be. A slip of one of these gets ``""``: a misspelled name is what
            a stranger would register to wait for those who install it.
    """
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or closest(name, known, _SLIP) is not None:
        return ""
    return f"if a plugin of that name exists: pip install locus-plugin-{slug}"


@frozen
class _Found:
    """One entry point: where it points to, and the distribution it comes with."""

    reference: str
    dist: Any = field(eq=False)

    def __str__(self) -> str:
        return f"{self.dist.name} {self.dist.version}" if self.dist is not None else self.reference


class Catalogue:
    """The installed plugins; makes one scan, when it is first asked. Call it without arguments.

    Nothing is shared between catalogues: one is cheap to make, and the program that keeps it decides how
    long what it saw stays true.
    """

    def __init__(
        self,
        found: Mapping[str, tuple[_Found, ...]] | None = None,
        given: Mapping[str, Plugin | PluginError] = EMPTY,
    ) -> None:
        self._found = found
        self._given = given
        self._manifests: dict[str, Plugin | PluginError] = dict(given)

    @classmethod
    def only(cls, *manifests: Plugin) -> Catalogue:
        """A catalogue of these manifests and nothing that is installed: for tests, and for closed programs."""
        return cls({}).with_manifests(manifests)

    def with_manifests(self, manifests: Sequence[Plugin]) -> Catalogue:
        """A catalogue with these manifests on top, which hide installed ones of the same names."""
        return Catalogue(self._found, {**self._given, **{m.name: _check(m) for m in manifests}})

    def names(self) -> tuple[str, ...]:
        """The names of all plugins, sorted; nothing of a plugin is imported."""
        return tuple(sorted({*self._scan(), *self._given}))

    def version(self, name: str) -> str:
        """The version of a plugin's distribution; ``""`` where it has none."""
        if name in self._given:
            return ""
        found = self._scan().get(name, ())
        return str(found[0].dist.version) if len(found) == 1 and found[0].dist is not None else ""

    def manifest(self, name: str) -> Plugin:
        """The manifest of one plugin; no other plugin is touched.

        Raises:
            UnknownName: no such plugin is installed.
            PluginLoadError: its manifest cannot be imported, is not a `Plugin`, or has another name.
            PluginIncompatible: it was written for another version of the plugin API.
            PluginError: two distributions provide the name.
        """
        if name not in self._manifests:
            if name not in self._scan():
                raise UnknownName("plugin", name, self.names(), pip_hint(name, self.names()))
            try:
                self._manifests[name] = self._load(name)
            except PluginError as e:
                self._manifests[name] = e
        known = self._manifests[name]
        if isinstance(known, PluginError):
            raise known.with_traceback(None)
        return known

    def status(self) -> tuple[PluginReport, ...]:
        """What is installed, each as ``"available"``, ``"incompatible"`` or ``"failed"``."""
        return tuple(self._status(name) for name in self.names())

    def manifests(self) -> tuple[Plugin, ...]:
        """The manifests that can be loaded, by name; the others are in `status`."""
        return tuple(m for m in map(self._loadable, self.names()) if m is not None)

    def provides(self, kind: str, scheme: str) -> str:
        """The reference to the factory that a plugin provides.

        Args:
            kind: ``"model"``, ``"checkpointer"`` or ``"backend"``.
            scheme: the plugin's name.

        Raises:
            UnknownName: no such plugin is installed, or it provides nothing of the kind; the known names are
                those of plugins that do.
            PluginError: see `manifest`.
        """
        installed = scheme in self._given or scheme in self._scan()
        if installed:
            reference = self.manifest(scheme).provides.get(kind)
            if reference is not None:
                return reference
        known = [m.name for m in self.manifests() if kind in m.provides]
        hint = f"the plugin is installed and provides no {kind}" if installed else pip_hint(scheme, known)
        raise UnknownName(f"{kind} provider", scheme, known, hint)

    def takes(self, kind: str, suffix: str) -> tuple[str, ...]:
        """The names of the plugins that provide a kind, and to which files whose names end so belong."""
        return tuple(m.name for m in self.manifests() if kind in m.provides and suffix in m.suffixes)

    def _loadable(self, name: str) -> Plugin | None:
        try:
            return self.manifest(name)
        except PluginError:
            return None

    def _status(self, name: str) -> PluginReport:
        try:
            manifest = self.manifest(name)
        except PluginError as e:
            return report_of(name, self.version(name), e)
        return PluginReport(name=name, version=self.version(name), status="available", guard=manifest.guard)

    def _scan(self) -> Mapping[str, tuple[_Found, ...]]:
        if self._found is None:
            by_name: dict[str, list[_Found]] = {}
            # Unlike a walk over all distributions, this leaves out one that another hides earlier on the path.
            for point in _entry_points():
                by_name.setdefault(point.name, []).append(_Found(point.value, point.dist))
            self._found = {name: tuple(found) for name, found in by_name.items()}
        return self._found

    def _load(self, name: str) -> Plugin:
        found = self._scan()[name]
        if len(found) > 1:
            both = " and ".join(sorted(map(str, found)))
            raise PluginError(name, f"more than one distribution provides it: {both}; uninstall all but one")
        reference = re.sub(r"\s*\[.*", "", found[0].reference).replace(" ", "")
        manifest = load(name, reference)
        if not isinstance(manifest, Plugin):
            raise PluginLoadError(
                name, f"its entry point {reference} is {manifest!r:.80}; it must be a locus.plugin.Plugin"
            )
        if manifest.name != name:
            raise PluginLoadError(
                name, f"its manifest is named {manifest.name!r}; entry point and manifest must have one name"
            )
        _check_api(manifest)
        return manifest


def _entry_points() -> Iterable[Any]:
    # Looked up each time, unlike a name of a `Lazy`: tests put a list of their own in its place.
    points: Iterable[Any] = resolve("importlib_metadata:entry_points")(group=GROUP)
    return points


def _check(manifest: Plugin) -> Plugin | PluginError:
    try:
        _check_api(manifest)
    except PluginIncompatible as e:
        return e
    return manifest


def _check_api(manifest: Plugin) -> None:
    """The majors must agree, and the plugin's minor must not be newer than ours.

    Raises:
        PluginIncompatible: they do not.
    """
    api: Any = manifest.api
    if not (isinstance(api, tuple) and len(api) == 2 and all(type(part) is int for part in api)):
        raise PluginIncompatible(manifest.name, f"its plugin API version is {api!r}; it must be (major, minor)")
    if api[0] == API[0] and api[1] <= API[1]:
        return
    upgrade = "locus-core" if api > API else "the plugin"
    raise PluginIncompatible(
        manifest.name,
        f"it was written for plugin API {api[0]}.{api[1]}, this is {API[0]}.{API[1]}; upgrade {upgrade}",
    )


def report_of(name: str, version: str, error: Exception) -> PluginReport:
    """The report of a plugin that cannot be used."""
    return PluginReport(
        name=name,
        version=version,
        status="incompatible" if isinstance(error, PluginIncompatible) else "failed",
        detail=str(error),
        trace="".join(traceback.format_exception(error.__cause__)) if error.__cause__ is not None else "",
    )
