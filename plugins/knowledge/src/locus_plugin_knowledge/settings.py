"""The settings of the plugin: the table ``[plugins.knowledge]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus.core.labels import LEVELS, Reads
from locus_kit.validators import integer
from locus_plugin_knowledge.catalog import SqliteCatalog

__all__ = ["MOST", "KnowledgeSettings"]

#: How many rows one search may give.
MOST = 20


def _catalog(_: object, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, str | Path):
        if not str(value).strip():
            raise ValueError(f"{attribute.name} must name a file, got {value!r}")
    elif not isinstance(value, SqliteCatalog):
        raise TypeError(f"{attribute.name} must be a path or a SqliteCatalog, got {value!r:.80}")


@frozen(kw_only=True)
class KnowledgeSettings:
    """The catalog that an agent may search.

    Args:
        catalog: the path of its file, or a `SqliteCatalog`. A file that does not exist is an empty catalog.
        limit: how many rows a search gives unless the model says how many; from 1 to 20.
        max_chars: how much of each row's texts the model is shown.
        reads: whose words the rows hold, see ``tool(reads=)``. They come from research, so from anybody, unless you
            write them yourself: ``"own"``.

    Raises:
        TypeError, ValueError: a value is of the wrong kind or out of range.
    """

    catalog: str | Path | SqliteCatalog = field(default="catalog.db", validator=_catalog)
    limit: int = field(default=5, validator=integer(1, MOST))
    max_chars: int = field(default=1_000, validator=integer(50))
    reads: Reads = field(default="untrusted", validator=in_(tuple(LEVELS)))
