"""Rows from their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import fields

from locus.core import decode
from locus_plugin_knowledge.protocol import KnowledgeRow

__all__ = ["read_row"]


def read_row(form: Mapping[str, Any], kind: type[KnowledgeRow]) -> KnowledgeRow:
    """A row of its JSON form; where that is not the class's, what `KnowledgeRow` knows of it.

    Raises:
        Exception: it is not the form of a row at all.
    """
    try:
        return _decode(form, kind)
    except Exception:  # whatever a class of a provider raises; the base is its own proof
        if kind is KnowledgeRow:
            raise
        return _decode(form, KnowledgeRow)


def _decode(form: Mapping[str, Any], kind: type[KnowledgeRow]) -> KnowledgeRow:
    known = {each.name for each in fields(kind)}
    return decode({name: value for name, value in form.items() if name in known}, kind)
