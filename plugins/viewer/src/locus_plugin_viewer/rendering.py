"""Pages from templates. Whatever a template prints is cleaned and then escaped: no template has to remember that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from locus_plugin_viewer.items import Block
from locus_plugin_viewer.text import clean, format_age, format_time, format_usage
from locus_plugin_viewer.viewer import Viewer

__all__ = ["Pages", "url"]

_HERE = Path(__file__).parent

#: Status -> what a person reads.
_WORDS = {
    "new": "empty",
    "queued": "queued",
    "running": "running",
    "crashed": "interrupted",
    "waiting": "waiting for you",
    "paused": "paused",
    "ended": "ended",
    "failed": "failed",
    "dead_letter": "set aside",
    "damaged": "damaged",
    None: "unknown",
}


def _finalize(value: Any) -> Any:
    # Markup is what the templates themselves have made.
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def url(path: str, **parameters: Any) -> Markup:
    """An address of this server, escaped; parameters that are None or empty are left out."""
    query = urlencode({name: value for name, value in parameters.items() if value not in (None, "", False)})
    return escape(f"{path}?{query}" if query else path)


class Pages:
    """Renders the templates.

    Args:
        viewer: what the pages are about.
    """

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,  # always, whatever a file is called
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            age=format_age, comma=", ".join, time=format_time, url=url, usage=format_usage, viewer=viewer, words=_WORDS
        )
        for name in self._environment.list_templates():
            self._environment.get_template(name)  # compiled now, and not while a browser waits

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A whole page, or a fragment of one."""
        return HTMLResponse(self.text(template, **values), status)

    def text(self, template: str, **values: Any) -> str:
        """A template as text."""
        return self._environment.get_template(template).render(**values)

    def blocks(self, thread_id: str, blocks: Sequence[Block]) -> str:
        """Some blocks of a timeline."""
        return self.text("_blocks.html", thread_id=thread_id, blocks=blocks)
