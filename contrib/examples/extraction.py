"""Letters in, typed rows out: every text file of a folder becomes rows of a CSV file, or a line that says why not.

    python contrib/examples/extraction.py invoices/ rows.csv

It needs the plugin of the model. An answer that does not fit the type goes back to the model with what is wrong, and so
does one that the type itself refuses: here, an invoice whose lines do not add up to its total.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import anyio
from attrs import field, frozen

from locus import Agent, TokenLimit


@frozen
class Line:
    """One position of an invoice."""

    article: str
    cents: int


@frozen
class Invoice:
    """An invoice; amounts are in cents, because 0.1 + 0.2 is not 0.3."""

    number: str
    supplier: str
    day: date
    lines: tuple[Line, ...]
    total_cents: int = field()

    @total_cents.validator
    def _check_total(self, attribute: object, value: int) -> None:
        added = sum(line.cents for line in self.lines)
        if added != value:
            raise ValueError(f"total_cents is {value}, but the lines add up to {added}")


@frozen
class Extracted:
    """What became of one file: an invoice, or the reason why there is none."""

    file: str
    invoice: Invoice | None
    problem: str = ""


def build(model: Any) -> Agent[Any, Invoice]:
    """Make the agent: it has no tools, so a letter that gives orders is only a letter.

    Args:
        model: ``"provider:name"``, or a model.
    """
    return Agent(
        model,
        name="extraction",
        system_prompt="Extract the invoice in the letter that the user shows you. Days are YYYY-MM-DD, amounts cents.",
        output_schema=Invoice,
        max_revisions=2,
        termination=TokenLimit(20_000),
        max_iterations=4,
    )


async def extract(agent: Agent[Any, Invoice], files: Sequence[Path], at_once: int = 4) -> list[Extracted]:
    """Read files, some at a time; one that fails does not stop the others."""
    rows: dict[Path, Extracted] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def read(path: Path) -> None:
        async with limiter:
            text = await anyio.Path(path).read_text(encoding="utf-8")
            result = await agent.run(text)
        problem = "" if result.parsed else f"{result.stop_reason}: {result.error or result.detail}"
        rows[path] = Extracted(path.name, result.parsed, problem)

    async with anyio.create_task_group() as group:
        for path in files:
            group.start_soon(read, path)
    return [rows[path] for path in files]


def write_rows(extracted: list[Extracted], out: Path) -> int:
    """Write one row for each line of each invoice, and return how many files gave none."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "number", "supplier", "day", "article", "cents"])
        for each in extracted:
            if each.invoice is None:
                print(f"{each.file}: {each.problem}", file=sys.stderr)
                continue
            head = [each.file, each.invoice.number, each.invoice.supplier, each.invoice.day.isoformat()]
            writer.writerows([*head, line.article, line.cents] for line in each.invoice.lines)
    return sum(each.invoice is None for each in extracted)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Extract the invoices of a folder of letters into a CSV file.")
    parser.add_argument("folder", type=Path, help="the folder with the letters, *.txt")
    parser.add_argument("out", type=Path, help="the CSV file")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    found = asyncio.run(extract(build(args.model), sorted(args.folder.glob("*.txt"))))
    sys.exit(1 if write_rows(found, args.out) else 0)
