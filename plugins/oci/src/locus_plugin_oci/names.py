"""Which form a model is asked in, by its name: ``"openai.gpt-5.5"``, ``"cohere.command-a-03-2025"``, or an OCID."""

from __future__ import annotations

from typing import Literal

from locus_plugin_oci.settings import Api

__all__ = ["Form", "form_of"]

Form = Literal["chat", "responses", "generic", "cohere"]

#: Families that the service offers behind its OpenAI-compatible address.
_COMPATIBLE = ("openai.", "xai.", "meta.")


def form_of(model: str, api: Api) -> Form:
    """How a model is asked.

    Args:
        model: its name, or an OCID, which says nothing of what it is.
        api: the setting; ``"auto"`` = by the name.
    """
    if api != "auto":
        return api
    if model.startswith("cohere."):
        return "cohere"
    return "chat" if model.startswith(_COMPATIBLE) else "generic"
