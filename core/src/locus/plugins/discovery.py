"""`Catalogue`: what is installed. It lists names without loading anything, and loads one manifest at a time.

A broken plugin is an entry with an error, never an exception for a program that does not use it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field

from locus.core.errors import PluginError, PluginIncompatible, PluginLoadError, PluginNotAllowed, UnknownName
from locus.core.frozen import EMPTY, frozen
from locus.core.lazy import Lazy
from locus.plugins.manifest import API, Plugin, load, resolve
from locus.plugins.report import PluginReport, Status

if TYPE_CHECKING:
    import traceback
else:
    traceback = Lazy("traceback")

#: The group of entry points; the name of each is the plugin's name.
GROUP = "locus.plugins"

#: A folder that changed in the last seconds may change again without another time: clocks of file systems tick slowly.
_SETTLED_NS = 3_000_000_000

#: The modules of what looks distributions up in the folders of the path alone.
_FOLLOW_THE_PATH = frozenset({"importlib_metadata", "_frozen_importlib_external"})


@frozen
class PluginSource:
    """Where an installed plugin comes from; knowing it imports nothing.

    Args:
        reference: its entry point, ``"package.module:name"``.
        dist: the distribution, as `importlib_metadata` describes it; None for an entry point without one.
    """

    reference: str
    dist: Any = field(eq=False)

    @property
    def distribution(self) -> str:
        """The name of the distribution, spelled as names are compared (PEP 503); ``""`` without one."""
        return "" if self.dist is None else _normalise(self.dist.name)

    @property
    def version(self) -> str:
        """The version of the distribution; ``""`` without one."""
        return "" if self.dist is None else str(self.dist.version)

    def __str__(self) -> str:
        return f"{self.dist.name} {self.version}" if self.dist is not None else self.reference

    def is_among(self, allowed: Iterable[str], name: str) -> bool:
        """Whether a list of allowed sources has this one, for the plugin of that name; see `Catalogue.allowing`."""
        mine = self.distribution
        if not mine:
            return False
        by_name = (_normalise(name),) if mine == f"locus-plugin-{_normalise(name)}" else ()
        return not {mine, f"{mine}:{name}", *by_name}.isdisjoint(map(_item, allowed))


class Catalogue:
    """The installed plugins; makes one scan, when it is first asked. Call it without arguments.

    Nothing is shared between catalogues: one is cheap to make, and the program that keeps it decides how
    long what it saw stays true.
    """

    def __init__(
        self,
        found: Mapping[str, tuple[PluginSource, ...]] | None = None,
        given: Mapping[str, Plugin | PluginError] = EMPTY,
        allowed: tuple[Sequence[str], ...] = (),
    ) -> None:
        self._found = found
        self._given = given
        self._allowed = allowed
        self._manifests: dict[str, Plugin | PluginError] = dict(given)

    @classmethod
    def only(cls, *manifests: Plugin) -> Catalogue:
        """A catalogue of these manifests and nothing that is installed: for tests, and for closed programs."""
        return cls({}).with_manifests(manifests)

    def with_manifests(self, manifests: Sequence[Plugin]) -> Catalogue:
        """A catalogue with these manifests on top, which hide installed ones of the same names."""
        given = {**self._given, **{m.name: _check(m) for m in manifests}}
        return Catalogue(self._found, given, self._allowed)

    def allowing(self, allowed: Sequence[str] | None) -> Catalogue:
        """A catalogue whose plugins come from some distributions only: of the others nothing is ever imported.

        Args:
            allowed: ``"distribution"`` for all of its plugins, ``"distribution:plugin"`` for one, ``"plugin"`` for the
                one of that name from the distribution that is named after it; None = anything. Manifests that a program
                passes itself are not asked about.
        """
        if allowed is None:
            return self
        return Catalogue(self._found, self._given, (*self._allowed, tuple(allowed)))

    def sources(self, name: str) -> tuple[PluginSource, ...]:
        """What provides an installed plugin: one source, or several that are in each other's way, or none.

        Where others are allowed, those that are not do not count.
        """
        if name in self._given:
            return ()
        every = self._scan().get(name, ())
        admitted = tuple(s for s in every if all(s.is_among(allowed, name) for allowed in self._allowed))
        return admitted or every

    def names(self) -> tuple[str, ...]:
        """The names of all plugins, sorted; nothing of a plugin is imported."""
        return tuple(sorted({*self._scan(), *self._given}))

    def version(self, name: str) -> str:
        """The version of a plugin's distribution; ``""`` where it has none."""
        found = self.sources(name)
        return found[0].version if len(found) == 1 else ""

    def manifest(self, name: str) -> Plugin:
        """The manifest of one plugin; no other plugin is touched.

        Raises:
            UnknownName: no such plugin is installed.
            PluginNotAllowed: it comes from a distribution that is not among those that are allowed.
            PluginLoadError: its manifest cannot be imported, is not a `Plugin`, or has another name.
            PluginIncompatible: it was written for another version of the plugin API.
            PluginError: two distributions provide the name.
        """
        if name not in self._manifests:
            if name not in self._scan():
                raise UnknownName("plugin", name, self.names())
            try:
                self._manifests[name] = self._load(name)
            except PluginError as e:
                self._manifests[name] = e
        known = self._manifests[name]
        if isinstance(known, PluginError):
            raise known.with_traceback(None)
        return known

    def status(self) -> tuple[PluginReport, ...]:
        """What is installed: ``"available"``, ``"incompatible"``, ``"failed"``, or ``"disabled"`` where not allowed."""
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
        hint = f"the plugin is installed and provides no {kind}" if installed else ""
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

    def _scan(self) -> Mapping[str, tuple[PluginSource, ...]]:
        if self._found is None:
            self._found = _find_installed()
        return self._found

    def _load(self, name: str) -> Plugin:
        found = self.sources(name)
        if not all(found[0].is_among(allowed, name) for allowed in self._allowed):
            # Before anything of it is imported: what a distribution runs when it is imported is the danger.
            add = f"{found[0].distribution}:{name}" if found[0].dist is not None else "a distribution that has it"
            raise PluginNotAllowed(name, f"it is of {found[0]}, which is not allowed; add {add!r} to allow")
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


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _item(text: str) -> str:
    """An item of ``allow``, its distribution as names are compared."""
    distribution, colon, plugin = text.partition(":")
    return f"{_normalise(distribution)}{colon}{plugin}"


def _find_installed() -> Mapping[str, tuple[PluginSource, ...]]:
    """What is installed now. A scan reads a file of every distribution, so it is kept while the path stays as it is."""
    # Looked up each time, unlike a name of a `Lazy`: tests put a list of their own in its place.
    look_up: Callable[..., Iterable[Any]] = resolve("importlib_metadata:entry_points")
    finders = [each for each in sys.meta_path if hasattr(each, "find_distributions")]
    path = tuple(map(_state_of, sys.path))
    settled = max((at for _, at in path), default=0) < time.time_ns() - _SETTLED_NS
    # Anything else may find other things each time it is asked.
    known = all(getattr(each, "__module__", "") in _FOLLOW_THE_PATH for each in (look_up, *finders))
    return (_scan if settled and known else _scan.__wrapped__)(look_up, path)


def _state_of(entry: str) -> tuple[str, int]:
    """An entry of the path, and when it changed, in nanoseconds; 0 where it is not there."""
    try:
        place = Path(entry).absolute()
        return str(place), place.stat().st_mtime_ns
    except (OSError, TypeError, ValueError):
        return repr(entry), 0


@lru_cache(maxsize=1)
def _scan(look_up: Callable[..., Iterable[Any]], path: object) -> Mapping[str, tuple[PluginSource, ...]]:
    """The installed plugins by name; of the path only that it is the same matters."""
    by_name: dict[str, list[PluginSource]] = {}
    # Unlike a walk over all distributions, this leaves out one that another hides earlier on the path.
    for point in look_up(group=GROUP):
        by_name.setdefault(point.name, []).append(PluginSource(point.value, point.dist))
    return {name: tuple(found) for name, found in by_name.items()}


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


_STATUS: Mapping[type, Status] = {PluginIncompatible: "incompatible", PluginNotAllowed: "disabled"}


def report_of(name: str, version: str, error: Exception) -> PluginReport:
    """The report of a plugin that cannot be used."""
    return PluginReport(
        name=name,
        version=version,
        status=_STATUS.get(type(error), "failed"),
        detail=str(error),
        trace="".join(traceback.format_exception(error.__cause__)) if error.__cause__ is not None else "",
    )
