"""The docstring as the model-facing contract: what stands there is what the model is told.

The parts that belong to a parameter move to that parameter's schema; everything else stays in the description.
"""

from __future__ import annotations

from collections.abc import Mapping

import docstring_parser
from attrs import frozen
from docstring_parser.common import (
    DocstringExample,
    DocstringMeta,
    DocstringParam,
    DocstringRaises,
    DocstringReturns,
)

__all__ = ["Contract", "contract"]


@frozen
class Contract:
    """A docstring taken apart.

    Args:
        description: all that is not about one parameter.
        parameters: the description of each documented parameter, by name.
    """

    description: str
    parameters: Mapping[str, str]


def contract(doc: str) -> Contract:
    """Take a docstring apart; Google, NumPy, reST and Epydoc style are recognised, and plain text is kept whole."""
    try:
        parsed = docstring_parser.parse(doc)
    except Exception:  # noqa: BLE001  an odd docstring is still a description
        return Contract(doc.strip(), {})
    parameters: dict[str, str] = {}
    paragraphs = [parsed.description or ""]
    for meta in parsed.meta:
        text = (meta.description or "").strip()
        # `attribute` is how Google style spells a field of a class; in a function it documents no parameter.
        if isinstance(meta, DocstringParam) and meta.args[0] != "attribute":
            if text:
                parameters[meta.arg_name.lstrip("*")] = text
            continue
        body = meta.snippet or text if isinstance(meta, DocstringExample) else text
        paragraphs.append(_section(meta, body))
    return Contract("\n\n".join(p.strip() for p in paragraphs if p.strip()), parameters)


def _section(meta: DocstringMeta, text: str) -> str:
    if isinstance(meta, DocstringReturns):
        title = "Yields" if meta.is_generator else "Returns"
    elif isinstance(meta, DocstringRaises):
        title = f"Raises {meta.type_name}" if meta.type_name else "Raises"
    elif isinstance(meta, DocstringExample):
        return f"Example:\n{text}" if text else ""
    else:
        title = " ".join(meta.args).replace("_", " ").capitalize()
    return f"{title}: {text}" if text else ""
