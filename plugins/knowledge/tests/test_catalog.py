"""A catalog: rows by key, found by words and columns, written by several processes, whatever the texts hold."""

from __future__ import annotations

import gc
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_knowledge import CatalogError, KnowledgeRow, SqliteCatalog
from locus_plugin_knowledge.database import prepare_file

from .kit import ELEMENTS, ElementRow

pytestmark = pytest.mark.anyio


def row(name: str, density: float = 1.0, **fields: Any) -> ElementRow:
    return ElementRow(name=name, provider="elements", density=density, **fields)


ROWS = [
    row("Lithium", 0.53, descriptions=["A light metal in batteries."], tags=["alkali"], confidence=0.9, symbol="Li"),
    row("Aluminium", 2.7, descriptions=["Cans and aircraft; a light metal."], domains=["engineering"]),
    row("Gold", 19.3, descriptions=["Coins. Lithium is lighter."], is_noble=True, confidence=0.5),
]


async def filled(path: Any = ":memory:") -> SqliteCatalog:
    catalog = SqliteCatalog(path, row_type=ElementRow)
    assert await catalog.upsert(ROWS) == 3
    return catalog


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(found: Any) -> list[str]:
    return [each.row.name for each in found]


async def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    catalog = await filled(tmp_path / "c.db")
    await catalog.aclose()

    assert [await catalog.get(each.key) for each in ROWS] == ROWS
    assert await catalog.get("elements:Iron") is None
    assert await catalog.count() == 3


async def test_words_are_found_and_the_best_fit_comes_first() -> None:
    catalog = await filled()

    assert names(await catalog.search("lithium")) == ["Lithium", "Gold"]
    assert names(await catalog.search("light METALS", 1)) in (["Lithium"], ["Aluminium"])
    assert names(await catalog.search("alkali")) == ["Lithium"]
    found = await catalog.search("lithium")
    assert found[0].score > found[1].score > 0
    assert names(await catalog.search("uranium")) == []


async def test_columns_are_conditions_and_orders() -> None:
    catalog = await filled()

    assert names(await catalog.search("", where={"density": ("<", 3)}, order_by="-density")) == ["Aluminium", "Lithium"]
    assert names(await catalog.search("", where={"is_noble": True})) == ["Gold"]
    assert names(await catalog.search("", where={"symbol": "Li", "provider": "elements"})) == ["Lithium"]
    assert names(await catalog.search("", where={"confidence": None})) == ["Aluminium"]
    assert names(await catalog.search("", order_by="confidence")) == ["Gold", "Lithium", "Aluminium"]
    assert names(await catalog.search("light", where={"density": (">", 1)})) == ["Aluminium"]
    assert await catalog.count({"confidence": ("!=", None)}) == 2


async def test_a_row_takes_the_place_of_the_one_with_its_key() -> None:
    catalog = await filled()
    await catalog.upsert([evolve(ROWS[0], density=9.9, descriptions=["Heavy now."])])

    assert await catalog.count() == 3
    assert names(await catalog.search("batteries")) == []
    assert names(await catalog.search("heavy", where={"density": 9.9})) == ["Lithium"]
    assert await catalog.delete(["elements:Lithium", "nobody"]) == 1
    assert names(await catalog.search("heavy")) == []


async def test_all_rows_of_a_call_are_written_or_none() -> None:
    catalog = await filled()
    for bad, error in ((3, TypeError), (row("Big", search_text="x" * 1_000_001), ValueError)):
        with pytest.raises(error):
            await catalog.upsert([row("Iron", 7.9), bad])  # type: ignore[list-item]
    assert await catalog.count() == 3


@frozen(kw_only=True)
class _Counted(KnowledgeRow):
    count: int = 0


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1, 10**4_000], ids=["more", "less", "far more"])
async def test_a_number_that_no_column_can_have_is_refused(count: int) -> None:
    catalog = SqliteCatalog(":memory:", row_type=_Counted)
    most = _Counted(name="most", provider="p", count=2**63 - 1)
    await catalog.upsert([most, _Counted(name="least", provider="p", count=-(2**63))])

    with pytest.raises(ValueError, match=r"row 'p:x': field 'count': expected an int of at most 64 bits, got one of "):
        await catalog.upsert([_Counted(name="y", provider="p"), _Counted(name="x", provider="p", count=count)])
    with pytest.raises(ValueError, match="the value of 'count': expected an int of at most 64 bits"):
        await catalog.search("", where={"count": ("<", count)})
    with pytest.raises(ValueError, match="the value of 'count': expected an int of at most 64 bits"):
        await catalog.count({"count": count})
    assert names(await catalog.search("", where={"count": 2**63 - 1})) == ["most"]
    assert await catalog.count() == 2


async def test_a_kept_number_that_a_new_column_cannot_have_is_null_there(tmp_path: Path) -> None:
    plain = SqliteCatalog(tmp_path / "c.db")
    given = [_Counted(name="few", provider="p", count=3), _Counted(name="many", provider="p", count=2**70)]
    await plain.upsert(given)

    grown = SqliteCatalog(tmp_path / "c.db", row_type=_Counted)
    assert names(await grown.search("", where={"count": 3})) == ["few"]
    assert names(await grown.search("", where={"count": None})) == ["many"]
    assert await grown.get("p:many") == given[1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"where": {"densty": 1}}, "no column 'densty'; did you mean 'density'"),
        ({"where": {"density; DROP TABLE rows": 1}}, "no column"),
        ({"where": {"data": 1}}, "no column 'data'"),
        ({"where": {"density": ("LIKE", "%")}}, "expected one of = != "),
        ({"where": {"density": [1]}}, "must be a str, a number, a bool or None"),
        ({"order_by": "density; --"}, "no column"),
        ({"limit": 0}, "limit must be an int of 1 or more"),
        ({"limit": True}, "limit must be an int of 1 or more"),
    ],
)
async def test_what_a_search_cannot_mean_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        await (await filled()).search("", **options)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "lithium AND NOT gold",
        "NEAR(a b",
        "name:lithium OR *",
        "') OR 1=1; DROP TABLE rows; --",
        "-lithium ^x {a b}:c",
        "x" * 100_000,
        " ".join(map(str, range(5_000))),
        "\x00 \ud800 lithium",
        "_ ___ ; ...",
    ],
)
async def test_no_query_is_anything_but_words(query: str) -> None:
    catalog = await filled()
    found = names(await catalog.search(query))
    assert set(found) >= ({"Lithium", "Gold"} if "lithium" in query else set())
    assert await catalog.count() == 3


@settings(max_examples=40, deadline=None, derandomize=True)
@given(texts=st.lists(st.text(), min_size=1, max_size=4), query=st.text())
def test_any_text_is_kept_and_any_query_is_answered(texts: list[str], query: str) -> None:
    async def check() -> None:
        catalog = SqliteCatalog(":memory:", row_type=ElementRow)
        given = row(texts[0].strip() or "x", descriptions=texts, search_text=query)
        await catalog.upsert([given])
        assert await catalog.get(given.key) == given
        await catalog.search(query)
        await catalog.search("", where={"name": query, "symbol": ("<", query)})
        await catalog.aclose()

    anyio.run(check)


async def test_a_class_that_grows_adds_its_columns_to_the_rows_that_are_there(tmp_path: Path) -> None:
    plain = SqliteCatalog(tmp_path / "c.db")
    await plain.upsert(ROWS)
    assert "density" not in plain.columns

    grown = SqliteCatalog(tmp_path / "c.db", row_type=ElementRow)
    assert names(await grown.search("", where={"density": (">", 3)})) == ["Gold"]
    # The one that does not know the column keeps it right.
    await plain.upsert([evolve(ROWS[0], density=20.0)])
    assert names(await grown.search("", where={"density": (">", 3)}, order_by="name")) == ["Gold", "Lithium"]


async def test_rows_of_another_class_are_read_as_far_as_they_are_known(tmp_path: Path) -> None:
    @frozen(kw_only=True)
    class Person(KnowledgeRow):
        born: int

    people = SqliteCatalog(tmp_path / "c.db", row_type=Person)
    await people.upsert([Person(name="Ada", provider="people", born=1815), ROWS[2]])

    assert [type(each.row) for each in await people.search("", order_by="name")] == [Person, KnowledgeRow]
    assert names(await people.search("", where={"born": ("<", 1900)})) == ["Ada"]


async def test_a_file_that_does_not_exist_is_empty_and_reading_does_not_make_it(tmp_path: Path) -> None:
    catalog = SqliteCatalog(tmp_path / "c.db")
    assert (await catalog.search("x"), await catalog.count(), await catalog.delete(["x"])) == ((), 0, 0)
    assert contents(tmp_path) == {}


async def test_what_is_not_a_catalog_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but a longer text than a header" * 9)
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE rows (id)")
    db.close()
    before = contents(tmp_path)
    for name, problem in (("text.db", "not a SQLite file"), ("other.db", "not a catalog"), ("no/where.db", "unable")):
        with pytest.raises(CatalogError, match=problem):
            await SqliteCatalog(tmp_path / name).upsert(ROWS)
    assert contents(tmp_path) == before


async def test_a_catalog_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    await (await filled(tmp_path / "c.db")).aclose()
    with sqlite3.connect(tmp_path / "c.db") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(CatalogError, match="newer version"):
        await SqliteCatalog(tmp_path / "c.db").count()


async def test_a_damaged_row_is_an_error_of_the_file_and_not_of_the_rows_that_are_written(tmp_path: Path) -> None:
    plain = SqliteCatalog(tmp_path / "c.db")
    await plain.upsert(ROWS)
    await plain.aclose()
    with sqlite3.connect(tmp_path / "c.db") as db:
        db.execute("UPDATE rows SET data = '{' WHERE id = 2")
    db.close()
    with pytest.raises(CatalogError, match="the row with the id 2 is damaged: "):
        await SqliteCatalog(tmp_path / "c.db", row_type=ElementRow).upsert(ROWS)


async def test_a_catalog_that_is_locked_too_long_says_so(tmp_path: Path) -> None:
    catalog = await filled(tmp_path / "c.db")
    await catalog.aclose()
    other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(CatalogError, match=r"kept it locked for 0\.05 s"):
            await SqliteCatalog(tmp_path / "c.db", row_type=ElementRow, busy_timeout=0.05).upsert(ROWS)
    finally:
        other.close()


async def test_a_catalog_that_is_dropped_closes_its_file(tmp_path: Path) -> None:
    catalog = await filled(tmp_path / "c.db")
    db = catalog._db
    assert db is not None
    del catalog
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_a_file_that_another_process_makes_meanwhile_is_a_catalog(tmp_path: Path) -> None:
    path = tmp_path / "c.db"

    def make_file() -> None:
        db = sqlite3.connect(path, isolation_level=None)
        prepare_file(db, str(path), KnowledgeRow, 30.0)
        db.close()

    class Interrupted(sqlite3.Connection):
        """Lets another make the file after its id was read, if it can."""

        other = threading.Thread(target=make_file)

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            if "sqlite_master" in sql and not self.other.ident:
                self.other.start()
                self.other.join(1.0)
            return super().execute(sql, *args)

    db = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
    try:
        prepare_file(db, str(path), KnowledgeRow, 30.0)
    finally:
        db.close()
        Interrupted.other.join()


async def test_tasks_share_a_catalog() -> None:
    catalog = await filled()
    async with anyio.create_task_group() as group:
        for name, density in ELEMENTS.items():
            group.start_soon(catalog.upsert, [row(name, density)])
            group.start_soon(catalog.search, "metal")
    assert await catalog.count() == 3 + len(ELEMENTS)


WRITER = """
import anyio, sys
from locus_plugin_knowledge import KnowledgeRow, SqliteCatalog

async def main(path, who):
    catalog = SqliteCatalog(path)
    for n in range(20):
        rows = [KnowledgeRow(name=f"{who}-{n}", provider="p"), KnowledgeRow(name="shared", provider="p", tags=[who])]
        await catalog.upsert(rows)
        assert len(await catalog.search(f"{who} {n}")) >= 1

anyio.run(main, *sys.argv[1:])
"""


def test_processes_share_a_catalog_from_its_first_write_on(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), who], stderr=subprocess.PIPE, text=True)
        for who in ("a", "b", "c")
    ]
    said = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], said

    async def look() -> tuple[int, int]:
        catalog = SqliteCatalog(path)
        return await catalog.count(), len(await catalog.search("shared"))

    assert anyio.run(look) == (61, 1)


def test_a_row_type_that_is_not_one_is_refused() -> None:
    with pytest.raises(TypeError, match="row_type must be a KnowledgeRow class, got <class 'dict'>"):
        SqliteCatalog(":memory:", row_type=dict)  # type: ignore[arg-type]


def test_a_row_is_plain_data_and_its_fields_are_checked() -> None:
    assert json.dumps(ROWS[0].descriptions)
    for wrong in ({"confidence": 1.5}, {"tags": "metal"}, {"name": " "}, {"descriptions": [3]}, {"search_text": None}):
        with pytest.raises((TypeError, ValueError)):
            evolve(ROWS[0], **wrong)
