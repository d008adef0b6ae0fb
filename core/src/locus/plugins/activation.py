"""From names to active plugins: chosen, loaded, configured, ordered.

Nothing is looked for unless something is asked for. What is asked for in code or on the command line must
work; what a file or the environment asks for may be missing and is then reported, unless it is required or
a guard: an agent must not run without its guard as if nothing were amiss.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import Any, Literal

from attrs import evolve, field

from locus.core.errors import (
    ConfigError,
    LocusError,
    PluginError,
    PluginLoadError,
    PluginNotAllowed,
    SettingsError,
    UnknownName,
)
from locus.core.frozen import EMPTY, FrozenDict, freeze, frozen
from locus.plugins.discovery import Catalogue, report_of
from locus.plugins.manifest import Plugin, load
from locus.plugins.providers import plugin_settings, provide
from locus.plugins.report import PluginReport
from locus.plugins.secret import redact
from locus.plugins.settings import Layer


@frozen(kw_only=True)
class PluginRequest:
    """Which plugins are asked for, and where.

    Args:
        enabled: names in the configuration file.
        required: names that must work, in the configuration file; required is enabled.
        allow: where plugins may come from, in the configuration file: see `Catalogue.allowing`.
        tables: settings in the configuration file, by plugin.
        env: ``LOCUS_PLUGINS``: a comma-separated list of ``name`` and ``no:name``.
        cli: what the command line says, ``name``, ``no:name``, or ``no:*`` for none of the above.
        plugins: ``Agent(plugins=...)``: names, ``no:name``, or manifests that nothing installed.
        keywords: keywords of ``Agent`` that are not its own: ``name=True``, ``name=False``, ``name={...}``,
            ``name=Settings(...)``, or a keyword that a manifest declares.
        strict: whatever is asked for must work.
    """

    enabled: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    tables: Mapping[str, Layer] = EMPTY
    env: str = ""
    cli: tuple[str, ...] = ()
    plugins: tuple[str | Plugin, ...] = ()
    keywords: Mapping[str, Any] = EMPTY
    strict: bool = False


@frozen(kw_only=True)
class ActivePlugin:
    """One chosen plugin.

    Args:
        manifest: what it says of itself.
        instances: its hook objects and modules, in the manifest's order.
        version: of its distribution; ``""`` when it was passed in code.
        settings: its settings, or None when it has none.
        fatal: if its hooks break the specification the agent is not built; otherwise it is left out and reported.
    """

    manifest: Plugin
    instances: tuple[object, ...] = ()
    version: str = ""
    settings: object | None = None
    fatal: bool = True


@frozen
class Activation:
    """The active plugins, in the order in which their hooks are called, and what became of the others."""

    plugins: tuple[ActivePlugin, ...] = ()
    reports: tuple[PluginReport, ...] = ()

    @property
    def settings(self) -> FrozenDict[str, Any]:
        """The settings of the active plugins that have some, by name: what `provide` takes."""
        return FrozenDict((p.manifest.name, p.settings) for p in self.plugins if p.settings is not None)


@frozen
class _CodeSettings:
    """What the code says about one plugin's settings: layers over its table, or over an instance."""

    layers: tuple[Layer, ...] = ()
    instance: object | None = None


def activate(
    wanted: PluginRequest,
    catalogue: Catalogue | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Iterable[str] = (),
) -> Activation:
    """Choose, load, configure and order.

    Args:
        wanted: the request.
        catalogue: the installed plugins; a fresh scan when None, if one is needed at all.
        environ: where secrets come from; the process's environment when None.
        options: ``Agent``'s own keywords, for the nearest to an unknown one.

    Raises:
        UnknownName: a name in code or on the command line that nothing answers to.
        PluginError: a plugin that must work cannot be used, or the order is circular.
        SettingsError: every wrong setting of every active plugin.
        ConfigError: a required plugin is switched off, or a keyword contradicts another.
    """
    named = [item.name if isinstance(item, Plugin) else _name(item) for item in wanted.plugins]
    layers: list[tuple[Origin, Sequence[str]]] = [
        ("config", wanted.enabled),
        ("required", wanted.required),
        ("environment", split_names(wanted.env)),
        ("command line", wanted.cli),
        ("code", named),
    ]
    if not wanted.keywords and not any(items for _, items in layers):
        return Activation()
    installed = (Catalogue() if catalogue is None else catalogue).allowing(wanted.allow)
    installed = installed.with_manifests([item for item in wanted.plugins if isinstance(item, Plugin)])
    asked, switches = _keywords(wanted.keywords, installed, tuple(options))
    configured = tuple(select(layers).enabled)  # a keyword switches on and says nothing about order
    selection = select([*layers, ("code", switches)])
    return _Chooser(wanted, installed, selection, asked, environ).activation(configured)


def _name(item: Any) -> str:
    if not isinstance(item, str):
        raise ConfigError(f"plugins holds {item!r:.80}; use names, 'no:name', or Plugin(...) manifests")
    return item


def _keywords(
    keywords: Mapping[str, Any], catalogue: Catalogue, options: tuple[str, ...]
) -> tuple[dict[str, _CodeSettings], list[str]]:
    """What the keywords mean: settings by plugin, and which plugins they switch on or off."""
    asked: dict[str, _CodeSettings] = {}
    switches: dict[str, bool] = {}
    declared: dict[str, list[Layer]] = {}
    names = catalogue.names() if keywords else ()
    for keyword, value in keywords.items():
        if keyword in names:
            switches[keyword] = value is not False
            asked[keyword] = _read_keyword(keyword, value)
        else:
            plugin, setting = _find_declared(keyword, catalogue, options)
            declared.setdefault(plugin, []).append(Layer(f"Agent({keyword}=...)", "", {setting: value}))
    for plugin, layers in declared.items():
        if switches.setdefault(plugin, True) is False:
            raise ConfigError(f"{layers[0].source} contradicts {plugin}=False; remove one of them")
        known = asked.get(plugin, _CodeSettings())
        asked[plugin] = evolve(known, layers=(*known.layers, *layers))
    return asked, [name if on else f"no:{name}" for name, on in switches.items()]


def _read_keyword(name: str, value: Any) -> _CodeSettings:
    if isinstance(value, bool):
        return _CodeSettings()
    if value is None:
        raise ConfigError(
            f"{name} must be True, False, a dict of settings, or an instance of its settings class, got None"
        )
    if isinstance(value, Mapping):
        return _CodeSettings(layers=(Layer(f"Agent({name}=...)", "", value),))
    return _CodeSettings(instance=value)


def _find_declared(keyword: str, catalogue: Catalogue, options: tuple[str, ...]) -> tuple[str, str]:
    """The plugin that declares a keyword, and the setting that it sets."""
    manifests = catalogue.manifests()
    found = [(m.name, m.keywords[keyword]) for m in manifests if keyword in m.keywords]
    if len(found) == 1:
        return found[0]
    if found:
        rivals = " and ".join(name for name, _ in found)
        raise ConfigError(f"the keyword {keyword!r} is declared by more than one plugin: {rivals}; uninstall one")
    declared = [k for m in manifests for k in m.keywords]
    known = (*options, *catalogue.names(), *declared)
    raise UnknownName("option of Agent", keyword, known)


class _Chooser:
    """Loads and configures what was selected, and keeps account of what cannot be."""

    def __init__(
        self,
        wanted: PluginRequest,
        catalogue: Catalogue,
        selection: Selection,
        asked: Mapping[str, _CodeSettings],
        environ: Mapping[str, str] | None,
    ) -> None:
        self._wanted, self._catalogue, self._selection = wanted, catalogue, selection
        self._asked, self._environ = asked, environ
        code = [item for item in wanted.plugins if isinstance(item, str)]
        #: What was asked for; switched off by a stronger layer it need not be installed.
        self._named = {*wanted.enabled, *wanted.required, *split_names(wanted.env), *wanted.cli, *code}
        self._reports: list[PluginReport] = []
        self._problems: list[str] = []

    def activation(self, configured: Sequence[str]) -> Activation:
        """Everything selected that works, in order."""
        manifests: dict[str, Plugin] = {}
        for name, origin in self._selection.enabled.items():
            try:
                manifests[name] = self._catalogue.manifest(name)
            except LocusError as e:
                # Unread it cannot be told from a guard, and an agent does not run without one.
                self._refuse(name, origin, e, guard=isinstance(e, PluginNotAllowed))
        order = order_plugins({name: manifest.after for name, manifest in manifests.items()}, configured)
        active = [plugin for name in order if (plugin := self._make(manifests[name])) is not None]
        if self._problems:
            raise SettingsError(self._problems)
        for name, origin in self._selection.disabled.items():
            if name not in self._named and name not in self._catalogue.names():
                # A typing mistake would leave on what was to be switched off.
                try:
                    self._catalogue.manifest(name)
                except UnknownName as e:
                    self._refuse(name, origin, e, guard=False)
                continue
            self._reports.append(PluginReport(name=name, status="disabled", detail=f"switched off by {origin}"))
        return Activation(tuple(active), tuple(self._reports))

    def _make(self, manifest: Plugin) -> ActivePlugin | None:
        name = manifest.name
        origin = self._selection.enabled[name]
        try:
            settings = self._settings(manifest)
            instances = tuple(_instance(name, reference, settings, self._provide) for reference in manifest.hooks)
        except SettingsError as e:
            self._problems += e.problems
            return None
        except PluginError as e:
            self._refuse(name, origin, e, guard=manifest.guard)
            return None
        return ActivePlugin(
            manifest=manifest,
            instances=instances,
            version=self._catalogue.version(name),
            settings=settings,
            fatal=self._must_work(origin) or manifest.guard,
        )

    def _settings(self, manifest: Plugin) -> object | None:
        asked = self._asked.get(manifest.name, _CodeSettings())
        if asked.instance is None:
            table = self._wanted.tables.get(manifest.name)
            layers = [*(() if table is None else (table,)), *asked.layers]
            return plugin_settings(manifest, layers, None, self._environ)
        made: Any = plugin_settings(manifest, [], asked.instance, self._environ)
        over = [(layer.source, key, value) for layer in asked.layers for key, value in layer.values.items()]
        for source, key, value in over:
            try:
                made = evolve(made, **{key: value})
            except (ValueError, TypeError) as e:
                raise SettingsError([f"{source}: {key} is {redact(repr(value)):.60}: {e}"]) from e
        instance: object = made
        return instance

    def _provide(self, kind: str, text: str) -> object:
        """What an installed plugin provides, from where the agent allows and with the settings that the agent has."""
        asked = {name: self._settings(self._catalogue.manifest(name)) for name in self._asked}
        settings = {**self._wanted.tables, **asked}
        return provide(kind, text, catalogue=self._catalogue, settings=settings, environ=self._environ)

    def _refuse(self, name: str, origin: Origin, error: LocusError, *, guard: bool) -> None:
        if guard or self._must_work(origin):
            # What a plugin says about how it is configured is said as itself.
            raise error.__cause__ if isinstance(error.__cause__, ConfigError) else error
        if isinstance(error, UnknownName):
            self._reports.append(PluginReport(name=name, status="missing", detail=str(error)))
        else:
            self._reports.append(report_of(name, self._catalogue.version(name), error))

    def _must_work(self, origin: Origin) -> bool:
        return self._wanted.strict or origin in ("required", "code", "command line")


def _instance(plugin: str, reference: str, settings: object | None, provide: Callable[[str, str], object]) -> object:
    """One hook object or module of a plugin.

    A class with a parameter ``provide``, by keyword, gets a function ``(kind, "scheme:rest")`` that makes what another
    plugin provides: a backend or a model that its own settings name.

    Raises:
        PluginLoadError: it cannot be imported, or making it failed.
        SettingsError: its constructor refuses the settings.
    """
    found = load(plugin, reference)
    if isinstance(found, ModuleType) or not isinstance(found, type):
        return found
    try:
        options = {"provide": provide} if _takes_provider(found) else {}
        return found(settings, **options) if _takes_settings(found) else found(**options)
    except SettingsError:
        raise
    except Exception as e:
        hint = "; a hook class is called with the settings, or without arguments"
        raise PluginLoadError(
            plugin, f"{reference} cannot be made: {type(e).__name__}: {e}{hint if isinstance(e, TypeError) else ''}"
        ) from e


def _takes_settings(cls: type) -> bool:
    """Whether a class wants the settings: its first parameter is called so, or must be given."""
    parameters = _parameters(cls).values()
    first = next((p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)), None)
    return first is not None and (first.name == "settings" or first.default is first.empty)


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(cls).parameters
    except (ValueError, TypeError):
        return EMPTY


def _takes_provider(cls: type) -> bool:
    parameter = _parameters(cls).get("provide")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


# -- which plugins -----------------------------------------------------------------------------------


Origin = Literal["config", "required", "environment", "command line", "code"]

_NOT = "no:"
_ALL = "*"


def split_names(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, such as ``LOCUS_PLUGINS``; blanks around them do not count."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


@frozen
class Selection:
    """What was chosen.

    Args:
        enabled: name -> who asked for it last, in the order in which the names were written down; what is
            required stays so.
        disabled: name -> who switched it off.
    """

    enabled: FrozenDict[str, Origin] = field(default=EMPTY, converter=freeze)
    disabled: FrozenDict[str, Origin] = field(default=EMPTY, converter=freeze)


def select(layers: Iterable[tuple[Origin, Sequence[str]]]) -> Selection:
    """The plugins that are on after every layer has spoken.

    Args:
        layers: from the weakest to the strongest. An item is ``"name"``, ``"no:name"``, or ``"no:*"`` for
            "nothing of what weaker layers asked for".

    Raises:
        ConfigError: a required plugin is switched off, or an item is empty.
    """
    enabled: dict[str, Origin] = {}
    disabled: dict[str, Origin] = {}
    required: set[str] = set()
    for origin, items in layers:
        before = tuple(enabled)
        for item in items:
            off = item.startswith(_NOT)
            name = item.removeprefix(_NOT).strip()
            if not name:
                raise ConfigError(f"{item!r} ({origin}) names no plugin; write 'name' or 'no:name'")
            if origin == "required":
                required.add(name)
            if not off:
                enabled[name] = "required" if name in required else origin
                disabled.pop(name, None)
                continue
            for gone in before if name == _ALL else (name,):
                if gone in required:
                    raise ConfigError(f"plugin {gone!r} is required and switched off by {item!r} ({origin}); drop one")
                enabled.pop(gone, None)
                disabled[gone] = origin
    return Selection(enabled, disabled)


# -- in which order ----------------------------------------------------------------------------------


def order_plugins(after: Mapping[str, Iterable[str]], configured: Sequence[str] = ()) -> tuple[str, ...]:
    """The names in the order in which their hooks are called.

    Args:
        after: for each name the names that come before it; those that are not among the keys do not count.
        configured: the order the user wrote down; what is not in it follows, by name.

    Raises:
        PluginError: the names are in a circle; the message shows it.
    """
    place = {name: i for i, name in reversed(list(enumerate(configured)))}
    waiting = TopologicalSorter({name: [a for a in wanted if a in after] for name, wanted in after.items()})
    try:
        waiting.prepare()
    except CycleError as e:
        circle: list[str] = e.args[1][:0:-1]
        first = circle.index(min(circle))
        shown = " after ".join((*circle[first:], *circle[: first + 1]))
        raise PluginError(min(circle), f"the order of plugins is circular: {shown}; disable one of them") from None
    order: list[str] = []
    ready: set[str] = set()
    while waiting.is_active():
        ready.update(waiting.get_ready())
        name = min(ready, key=lambda name: (place.get(name, len(place)), name))
        ready.remove(name)
        waiting.done(name)
        order.append(name)
    return tuple(order)
