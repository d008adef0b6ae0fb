"""What ``locus models`` shows of this plugin, and whether it offers a default."""

from __future__ import annotations

from collections.abc import Mapping

from locus_plugin_oci.settings import OciSettings

__all__ = ["default_model", "models"]


def models(settings: OciSettings | None) -> list[tuple[str, str]]:
    """The forms of names; which models a region has changes from month to month, and the console lists them."""
    return [
        ("oci:openai.gpt-5.5", "OpenAI's models, as xai. and meta.: the OpenAI-compatible address of the region."),
        ("oci:google.gemini-2.5-pro", "Any other family: the service's own form."),
        ("oci:cohere.command-a-03-2025", "Cohere's models: a form of their own."),
        ("oci:ocid1.generativeaiendpoint...", "A dedicated endpoint; set api = 'cohere' for one of Cohere's models."),
        ("oci:ocid1.generativeaimodel...", "A model by its OCID."),
    ]


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """None: only its owner knows which models a tenancy may use, and who pays for them."""
    return None
