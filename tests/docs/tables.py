"""Tables of a document, found by the text of their first heading."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["codes", "section", "table"]


def table(path: Path, first: str) -> list[list[str]]:
    """The rows of the one table whose first heading is that text; ``\\|`` in a cell is a bar."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith(f"| {first} |")]
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def codes(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]*)`", cell)


def section(path: Path, title: str) -> str:
    """The text below a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", path.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"{path.name} has no section {title!r}"
    return found[1]
