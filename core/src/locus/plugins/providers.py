"""From ``"scheme:rest"`` to the thing itself: the scheme is the name of the plugin that provides it.

A path can do without: the plugin whose files end like it, provides it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from locus.core.errors import ConfigError, PluginLoadError, SettingsError
from locus.core.frozen import EMPTY
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import Plugin, load
from locus.plugins.secret import redact
from locus.plugins.settings import Layer, structure


def scheme_of(kind: str, text: str) -> tuple[str, str]:
    """The scheme, and the text after its colon.

    Args:
        kind: what the text names, for the message: ``"model"``, ``"checkpointer"``, ``"backend"``.
        text: ``"scheme:rest"``.

    Raises:
        ConfigError: the text has no colon, or nothing before it.
    """
    scheme, colon, rest = text.partition(":")
    if not colon or not scheme:
        better = redact(rest or text or kind)
        raise ConfigError(
            f"{kind} {redact(text)!r} names no plugin; write 'plugin:{better}', with the name of the plugin "
            "that provides it, one of those that `locus plugins` lists"
        )
    return scheme, rest


def _choose(kind: str, given: str | os.PathLike[str], known: Catalogue) -> tuple[str, str]:
    text = os.fspath(given)
    if isinstance(given, str) and ":" in text:
        return scheme_of(kind, text)
    if isinstance(given, str) and text in known.names():
        raise ConfigError(f"{kind} {text!r} is the name of a plugin alone; write '{text}:NAME', with what it provides")
    suffix = PurePath(text).suffix
    shown = redact(text)
    takers = known.takes(kind, suffix) if suffix else ()
    if len(takers) == 1:
        return takers[0], text
    if takers:
        listed = " or ".join(f"'{name}:{shown}'" for name in takers)
        raise ConfigError(f"{kind} {shown!r}: more than one plugin takes such a path; write {listed}")
    if isinstance(given, str):
        return scheme_of(kind, text)
    raise ConfigError(
        f"{kind} {shown!r}: no installed plugin takes a path that ends in {suffix!r}; write 'plugin:{shown}', with the "
        "name of the plugin that provides it (see locus plugins)"
    )


def _place(kind: str, rest: str, manifest: Plugin, folder: Path | None) -> str:
    """The text for the factory, a relative path in it seen from a folder."""
    # A plugin that keeps files says how they end, and what it is given names one: a model's name alone need not.
    a_file = manifest.suffixes if kind != "model" else PurePath(rest).suffix in manifest.suffixes
    if folder is None or not rest or not a_file or rest.startswith((":", "~", "//")):
        return rest
    return str(folder / rest)


def provide(
    kind: str,
    text: str | os.PathLike[str],
    *,
    catalogue: Catalogue | None = None,
    settings: Mapping[str, Any] = EMPTY,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> object:
    """What a plugin makes of the text behind its name.

    Args:
        kind: ``"model"``, ``"checkpointer"`` or ``"backend"``.
        text: ``"scheme:rest"``; the plugin's factory is called ``factory(rest, settings)``. Or a path whose suffix
            is in the manifest of one installed plugin; then ``rest`` is the path.
        catalogue: the installed plugins; a fresh scan when None.
        settings: by plugin name, for whichever plugin it turns out to be: an instance of its settings class,
            a dict, or a `Layer` that knows its file. A plugin without an entry has its defaults.
        environ: where secrets come from; the process's environment when None.
        folder: what a relative path counts from, for a plugin whose manifest says how its files end; the working
            directory when None.

    Raises:
        ConfigError: the text names no plugin, or more than one takes such a path.
        UnknownName: no installed plugin of that name provides the kind.
        PluginError: the plugin cannot be used, or its factory cannot be imported.
        SettingsError: its settings are wrong.
        Exception: whatever the factory raises, with a note that names the plugin.
    """
    known = Catalogue() if catalogue is None else catalogue
    scheme, rest = _choose(kind, text, known)
    reference = known.provides(kind, scheme)
    manifest = known.manifest(scheme)
    given = settings.get(scheme)
    if given is None or isinstance(given, Mapping):
        given = Layer("settings", scheme, given or EMPTY)
    layered = isinstance(given, Layer)
    made = plugin_settings(manifest, [given] if layered else [], None if layered else given, environ)
    factory = load(scheme, reference)
    if not callable(factory):
        raise PluginLoadError(scheme, f"{reference} is {factory!r:.80}; a provided {kind} must be a callable")
    try:
        return factory(_place(kind, rest, manifest, folder), made)
    except Exception as e:
        e.add_note(f"while plugin {scheme!r} made the {kind} {redact(os.fspath(text))!r}")
        raise


def plugin_settings(
    manifest: Plugin,
    layers: list[Layer],
    given: object | None = None,
    environ: Mapping[str, str] | None = None,
) -> object | None:
    """The settings of a plugin: an instance of its class, or None when it has none.

    Args:
        manifest: the plugin's.
        layers: tables, from the weakest to the strongest.
        given: an instance, which is used as it is.
        environ: where secrets come from; the process's environment when None.

    Raises:
        SettingsError: they are wrong, or the plugin takes none.
        PluginLoadError: the settings class cannot be imported.
    """
    if manifest.settings is None:
        wrong = [f"{layer.source}: {layer.path or manifest.name} has settings" for layer in layers if layer.values]
        if given is not None:
            wrong.append(f"{manifest.name}={given!r:.60}")
        if wrong:
            raise SettingsError(f"{line}; the plugin {manifest.name!r} takes none" for line in wrong)
        return None
    cls = load(manifest.name, manifest.settings)
    if given is None:
        nothing = Layer("settings", f"plugins.{manifest.name}", EMPTY)
        made: object = structure(cls, layers or [nothing], environ)
        return made
    if isinstance(given, cls):
        instance: object = given
        return instance
    raise SettingsError([f"{manifest.name}={given!r:.60}; expected True, False, a dict or {cls.__name__}(...)"])
