"""Models behind OpenAI's APIs, wherever they are served.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_openai.model import OpenAIModel, make
    from locus_plugin_openai.settings import OpenAISettings

__all__ = ["OpenAIModel", "OpenAISettings", "make"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_openai.model": ("OpenAIModel", "make"),
        "locus_plugin_openai.settings": ("OpenAISettings",),
    },
)
