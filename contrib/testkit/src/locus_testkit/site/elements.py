"""The chemical elements, and a page for each of them. The data, its origin and its licence are in ``data/``."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib import resources

from attrs import frozen

from locus_testkit.site.pages import Page, render_list, render_table

__all__ = ["Element", "element_pages", "elements"]

_PATH = "/elements/"


@frozen(kw_only=True)
class Element:
    """A chemical element, as the data has it; what is unknown there is None.

    Args:
        number, symbol, name: as in the periodic table.
        weight: in daltons.
        density: in g/cm³.
        melting_point, boiling_point: in kelvin.
        period, group, block, series: its place in the periodic table.
        discoverers: names, or ``"Known to the ancients"``.
        year, location: of the discovery.
        name_origin, description, uses, sources: prose.
    """

    number: int
    symbol: str
    name: str
    weight: float
    period: int
    block: str
    series: str
    discoverers: str
    name_origin: str
    sources: str
    density: float
    group: int | None = None
    melting_point: float | None = None
    boiling_point: float | None = None
    year: int | None = None
    location: str | None = None
    description: str | None = None
    uses: str | None = None

    @property
    def path(self) -> str:
        """Of its page."""
        return f"{_PATH}{self.name.lower()}"


@cache
def elements() -> tuple[Element, ...]:
    """All of them, by number."""
    data = resources.files("locus_testkit.site").joinpath("data", "elements.jsonl").read_text("utf-8")
    return tuple(Element(**json.loads(line)) for line in data.splitlines())


@cache
def element_pages() -> tuple[Page, ...]:
    """A page for each element, and a table of all of them."""
    known = elements()
    pages = [_page(each, known) for each in known]
    rows = [[str(each.number), each.symbol, each.name, each.series, str(each.year or "")] for each in known]
    table = render_table(["Number", "Symbol", "Name", "Series", "Discovered"], rows)
    links = render_list([(each.path, each.name) for each in known])
    pages.append(Page(path=_PATH, title="All elements", body=f"{table}\n{links}"))
    return tuple(pages)


def _page(element: Element, known: tuple[Element, ...]) -> Page:
    sections = [
        ("", _summarize(element)),
        ("", element.description),
        ("Uses", element.uses),
        ("Sources", element.sources),
    ]
    prose = [
        (f"<h2>{title}</h2>\n" if title else "") + f"<p>{escape(text)}</p>"
        for title, text in sections
        if text is not None
    ]
    rows = [[name, text] for name, text in _facts(element) if text is not None]
    near = [known[i] for i in (element.number - 2, element.number) if 0 <= i < len(known)]
    return Page(
        path=element.path,
        title=element.name,
        body="\n".join([*prose, "<h2>Facts</h2>", render_table(["Property", "Value"], rows)]),
        see_also=tuple((each.path, each.name) for each in near),
    )


def _summarize(element: Element) -> str:
    """The facts that are asked about, as an encyclopedia begins."""
    name = element.name
    where = "" if element.location is None else f" in {element.location}"
    found = (
        f"{name} was known to the ancients."
        if element.year is None
        else f"{name} was discovered by {element.discoverers} in {element.year}{where}."
    )
    sentences = [
        f"{name} ({element.symbol}) is a chemical element with the atomic number {element.number}.",
        found,
        f"The density of {name.lower()} is {element.density:g} g/cm³.",
    ]
    if element.melting_point is not None:
        sentences.append(f"The melting point of {name.lower()} is {element.melting_point:g} K.")
    return " ".join(sentences)


def _facts(element: Element) -> list[tuple[str, str | None]]:
    return [
        ("Symbol", element.symbol),
        ("Atomic number", str(element.number)),
        ("Atomic weight", f"{element.weight:g} Da"),
        ("Series", element.series),
        ("Period", str(element.period)),
        ("Group", None if element.group is None else str(element.group)),
        ("Density", f"{element.density:g} g/cm³"),
        ("Melting point", None if element.melting_point is None else f"{element.melting_point:g} K"),
        ("Boiling point", None if element.boiling_point is None else f"{element.boiling_point:g} K"),
        ("Discovered by", element.discoverers),
        ("Discovered in the year", None if element.year is None else str(element.year)),
        ("Discovered in", element.location),
        ("Origin of the name", element.name_origin),
    ]
