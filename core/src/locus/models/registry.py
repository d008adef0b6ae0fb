"""From ``"provider:model"`` to a model: the scheme is the name of a plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from locus.core.errors import ConfigError, PluginError
from locus.core.frozen import EMPTY
from locus.core.lazy import Lazy
from locus.core.protocols import has_all_of
from locus.models.protocol import Model

if TYPE_CHECKING:
    from locus.plugins import providers
    from locus.plugins.discovery import Catalogue
else:
    providers = Lazy("locus.plugins.providers")

__all__ = ["get_model"]


def get_model(
    model: Model | str, *, catalogue: Catalogue | None = None, settings: Mapping[str, Any] | None = None
) -> Model:
    """The model behind a name; a `Model` is returned as it is.

    Args:
        model: ``"provider:model"``, or a `Model`.
        catalogue: the installed plugins; a fresh scan when None.
        settings: by plugin name: a dict of the provider's settings, or an instance of its settings class.

    Raises:
        ConfigError: the name has no provider, or is neither a name nor a model.
        UnknownName: no installed plugin provides it; the nearest one is named.
        PluginError: the plugin cannot be used.
    """
    if isinstance(model, str):
        made: Any = providers.provide("model", model, catalogue=catalogue, settings=settings or EMPTY)
        if not has_all_of(made, Model):
            raise PluginError(model.partition(":")[0], f"its factory must make a Model, got {made!r:.80}")
        found: Model = made
        return found
    if isinstance(model, type) or not has_all_of(model, Model):
        raise ConfigError(
            f"model must be 'provider:model', or an object with a name and a complete method, got {model!r:.80}"
        )
    return model
