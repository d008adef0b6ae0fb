"""Which model, and why: what the user says, then what the installed providers can do here.

Two optional kinds in a manifest's ``provides``, both references to plain functions:

- ``"models"``: ``(settings) -> rows of (name, note)``, what the provider offers;
- ``"default_model"``: ``(environ) -> (priority, model, why)`` or None, a model that works here and now without
  further configuration. By convention 100 when the provider's key is in the environment, 10 for what runs on
  this machine. The highest wins, then the provider's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from locus.core.errors import ConfigError, LocusError, PluginError
from locus.plugin import Plugin
from locus.plugins import Layer, load, plugin_settings, scheme_of
from locus_plugin_cli.distributions import install_command
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line

__all__ = [
    "ENV",
    "ChosenModel",
    "Offer",
    "ask",
    "choose_model",
    "find_providers",
    "list_offers",
    "settings_of",
    "why_unusable",
]

ENV = "LOCUS_MODEL"

#: The embedded model: the last resort, wherever its provider is installed.
_EMBEDDED = "llamacpp:qwen2.5-coder-1.5b"


@frozen
class ChosenModel:
    """A model, and who chose it."""

    model: str
    why: str


@frozen(kw_only=True)
class Offer:
    """One line of what a provider offers.

    Args:
        provider: the plugin's name.
        model: what ``--model`` takes; ``"provider:"`` and an ellipsis where the provider does not list its models.
        note: a few words about it.
        problem: why the provider could not say, or ``""``.
    """

    provider: str
    model: str
    note: str = ""
    problem: str = ""


def choose_model(option: str | None, project: Project, environ: Mapping[str, str]) -> ChosenModel:
    """The model of an agent.

    Args:
        option: ``--model``, or None.
        project: the configuration and the installed plugins.
        environ: where ``LOCUS_MODEL`` and the providers' keys are.

    Raises:
        ConfigError: nothing chooses one; the message says what to install.
    """
    if option:
        return ChosenModel(option, "--model")
    if environ.get(ENV):
        return ChosenModel(environ[ENV], ENV)
    configured = project.config.agent.get("model")
    if configured:
        return ChosenModel(configured, f"[agent] model in {project.config.source}")
    found = sorted(_defaults(project, environ), key=lambda row: (-row[0], row[1]))
    if found:
        return found[0][2]
    scheme = _EMBEDDED.partition(":")[0]
    names = [m.name for m in find_providers(project)]
    if scheme in names:
        return ChosenModel(_EMBEDDED, "no other is configured, and no provider's key is in the environment")
    if names:
        raise ConfigError(
            f"no model is chosen, and none of the installed providers ({', '.join(names)}) has a default here; "
            f"give --model {names[0]}:NAME, or set {ENV} or [agent] model in locus.toml"
        )
    raise ConfigError(
        "no model is chosen and no provider is installed; "
        f"{install_command(scheme)} for a model that runs on this machine, or install another provider"
    )


def why_unusable(chosen: ChosenModel, project: Project) -> str:
    """Why the chosen model cannot be made here, as far as its provider's name tells; ``""`` when it can.

    Args:
        chosen: from `choose_model`.
        project: the configuration and the installed plugins.
    """
    try:
        project.catalogue.provides("model", scheme_of("model", chosen.model)[0])
    except LocusError as e:
        return f"{chosen.why}: {one_line(str(e))}"
    return ""


def find_providers(project: Project) -> tuple[Plugin, ...]:
    """The installed plugins that provide models, by name."""
    return tuple(m for m in project.catalogue.manifests() if "model" in m.provides)


def list_offers(project: Project) -> list[Offer]:
    """What all providers offer; one that fails to say is one line with its problem."""
    return [offer for manifest in find_providers(project) for offer in _offers(manifest, project)]


def _offers(manifest: Plugin, project: Project) -> list[Offer]:
    name = manifest.name
    reference = manifest.provides.get("models")
    if reference is None:
        return [Offer(provider=name, model=f"{name}:...", note=manifest.summary)]
    try:
        rows = ask(name, reference, settings_of(manifest, project))
        return [_offer(name, row) for row in rows]
    except LocusError as e:
        return [Offer(provider=name, model=f"{name}:...", note=manifest.summary, problem=one_line(str(e)))]


def _offer(name: str, row: Any) -> Offer:
    if not (isinstance(row, tuple | list) and len(row) == 2 and all(isinstance(part, str) for part in row)):
        raise PluginError(name, f"its list of models holds {row!r:.60}; a row is (name, note)")
    model, note = row
    return Offer(provider=name, model=model if model.startswith(f"{name}:") else f"{name}:{model}", note=note)


def _defaults(project: Project, environ: Mapping[str, str]) -> Iterable[tuple[int, str, ChosenModel]]:
    for manifest in project.catalogue.manifests():
        reference = manifest.provides.get("default_model")
        if reference is None:
            continue
        answer = ask(manifest.name, reference, environ)
        if answer is None:
            continue
        if not (isinstance(answer, tuple) and [type(part) for part in answer] == [int, str, str]):
            raise PluginError(manifest.name, f"{reference} said {answer!r:.80}; it must say (priority, model, why)")
        priority, model, why = answer
        yield priority, manifest.name, ChosenModel(model, why)


def settings_of(manifest: Plugin, project: Project) -> Any:
    """The settings of a plugin, as its table in the configuration and the environment have them; None without any.

    Raises:
        SettingsError: they are wrong.
    """
    table = project.config.plugin_settings.get(manifest.name)
    return plugin_settings(manifest, [table] if isinstance(table, Layer) else [])


def ask(plugin: str, reference: str, argument: object) -> Any:
    """Call a function that a manifest refers to.

    Args:
        plugin: the name of the plugin.
        reference: ``"package.module:function"``.
        argument: what it is called with.

    Raises:
        LocusError: as it raised it.
        PluginError: it raised something else, or cannot be imported.
    """
    function = load(plugin, reference)
    try:
        return function(argument)
    except LocusError:
        raise
    # A provider that cannot say what it has must not take the others with it.
    except Exception as e:
        raise PluginError(plugin, f"{reference} raised {type(e).__name__}: {e}") from e
