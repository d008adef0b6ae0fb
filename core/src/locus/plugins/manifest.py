"""`Plugin`: the light manifest behind an entry point. Its parts are dotted references, imported when used.

This is the one place where a reference becomes an object: `resolve`, and `load` for a part of a plugin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from attrs import Attribute, field

from locus.core.errors import PluginLoadError, closest
from locus.core.frozen import EMPTY, FrozenDict, freeze, frozen

#: Version of the plugin API: the major breaks, the minor adds hooks or event fields.
API = (1, 0)

_COMPAT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?")


def _name(_: object, attribute: Attribute[Any], value: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"{attribute.name} is {value!r}; use lower-case letters, digits and '_'")


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"{value!r} is one text where several are expected; write ({value!r},)")
    return tuple(value)


def _suffixes(_: object, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    for suffix in value:
        if not re.fullmatch(r"\.[^./\\:]+", suffix):
            raise ValueError(f"{attribute.name} holds {suffix!r}; use the end of a file's name with its dot: '.db'")


def _compat_paths(_: object, attribute: Attribute[Any], value: Any) -> None:
    for name in value:
        if not _COMPAT_PATH.fullmatch(name):
            raise ValueError(f"{attribute.name} offers {name!r}; use 'locus.path:Name'")


def _references(_: object, attribute: Attribute[Any], value: Any) -> None:
    for reference in value.values() if isinstance(value, dict) else value:
        if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
            raise ValueError(f"{attribute.name} holds {reference!r}; use 'package.module:name'")


@frozen(kw_only=True)
class Plugin:
    """What a plugin is and provides, readable without importing it.

    Args:
        name: the one name: entry point = manifest = config table = CLI argument = `Agent` keyword = scheme.
        api: the plugin API it was written for, ``(major, minor)``.
        summary: one sentence for ``locus plugins``.
        hooks: references to objects, classes (called without arguments, or with the settings where they
            take one) or modules whose ``locus_*`` functions are marked with `hookimpl`. A class with a keyword-only
            parameter ``provide`` gets a function from kind and ``"scheme:rest"`` to what another plugin provides.
        settings: reference to its settings class (attrs, frozen), or None.
        provides: what it offers by kind: ``{"model": "pkg.models:make", "checkpointer": ..., "backend": ...}``.
            A factory is called with the text after the scheme and the settings.
        suffixes: how the names of files end that are this plugin's: ``(".db",)``. Such a path needs no scheme where
            something that it provides is asked for, and the text after its scheme is a path as well: a relative
            one in a configuration file counts from the folder of that file.
        compat_paths: names it offers under fixed import paths:
            ``{"locus.hooks.builtin:AuditHook": "pkg.hooks:Audit"}``.
        keywords: further `Agent` keywords and the settings field each sets.
        harmless: names of settings that a configuration file may set although the user has not said that it is trusted:
            they start and load nothing, name no address, file, model or secret, and take no protection away.
        includes: names of settings that are paths of further files of configuration: who trusts a file that names
            some, trusts them as they are then.
        guard: its hooks fail closed.
        after: names of plugins whose hooks come before its own.
        hook_timeout: seconds after which an async hook of it counts as failed, or None.
        buffers: a wrapper of it must see the whole answer before chunks are shown.
    """

    name: str = field(validator=_name)
    api: tuple[int, int]
    summary: str
    hooks: tuple[str, ...] = field(default=(), converter=_texts, validator=_references)
    settings: str | None = None
    provides: FrozenDict[str, str] = field(default=EMPTY, converter=freeze, validator=_references)
    suffixes: tuple[str, ...] = field(default=(), converter=_texts, validator=_suffixes)
    compat_paths: FrozenDict[str, str] = field(default=EMPTY, converter=freeze, validator=[_compat_paths, _references])
    keywords: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)
    harmless: tuple[str, ...] = field(default=(), converter=_texts)
    includes: tuple[str, ...] = field(default=(), converter=_texts)
    guard: bool = False
    after: tuple[str, ...] = field(default=(), converter=_texts)
    hook_timeout: float | None = None
    buffers: bool = False


def resolve(reference: str) -> Any:
    """The object behind ``"package.module"`` or ``"package.module:name.attribute"``.

    Raises:
        ImportError: the module or the name does not exist.
        Exception: whatever the module raises while it is imported.
    """
    module_name, _, path = reference.partition(":")
    found: Any = import_module(module_name)
    for name in path.split(".") if path else ():
        try:
            found = getattr(found, name)
        except AttributeError as e:
            near = closest(name, dir(found))
            hint = f"; did you mean {near!r}?" if near else ""
            raise ImportError(f"{module_name!r} has no {path!r}{hint}", name=module_name) from e
    return found


def load(plugin: str, reference: str) -> Any:
    """A part of a plugin; whatever goes wrong while it is imported is that plugin's failure.

    Raises:
        PluginLoadError: it cannot be imported; the cause is chained.
    """
    try:
        return resolve(reference)
    # A module may raise anything at import, and a script without a main guard calls sys.exit().
    except (Exception, SystemExit) as e:
        hint = f"; install what it needs: {e.name!r}" if isinstance(e, ModuleNotFoundError) else ""
        raise PluginLoadError(plugin, f"{reference} cannot be imported: {type(e).__name__}: {e}{hint}") from e
