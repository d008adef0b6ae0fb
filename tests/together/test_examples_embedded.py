"""Examples on the embedded model, as a reader runs them: what holds whatever a small model says."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.together.programs import Programs

pytestmark = pytest.mark.e2e

MODEL = ("--model", "llamacpp:qwen2.5-coder-1.5b")


def test_a_question_about_a_database_is_answered_after_a_query(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE sales (product TEXT, pieces INTEGER)")
        db.executemany("INSERT INTO sales VALUES (?, ?)", [("lamp", 3), ("chair", 5), ("lamp", 4)])
    question = "How many pieces of the product 'chair' were sold? Use the tool query."
    assert programs.run("sql_agent.py", "shop.db", question, *MODEL) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.upper().startswith("SELECT")
    assert "sales" in first
    assert rest[-1].strip()
    assert "Limit: " not in rest[-1]  # it ended by an answer


def test_an_invoice_becomes_a_row_or_a_line_that_says_why_not(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").mkdir()
    letter = "Acme Ltd\n1 March 2026\nInvoice number 77\n\n1 desk lamp: 8450 cents\n\nTotal: 8450 cents\n"
    (tmp_path / "letters" / "a.txt").write_text(letter, encoding="utf-8")
    status = programs.run("extraction.py", "letters", "rows.csv", *MODEL)
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert status == (0 if rows else 1)
    assert bool(rows) != ("a.txt: " in capsys.readouterr().err)
    assert all(int(row["cents"]) for row in rows)


def test_an_evaluation_is_made(programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = '{"id": "calc", "prompt": "What is 1234 * 5678? Use the tool.", "answer": "7006652", "tool": "multiply"}'
    (tmp_path / "cases.jsonl").write_text(case, encoding="utf-8")
    assert programs.run("evaluation.py", "cases.jsonl", "--at-least", 0, *MODEL) == 0
    assert "calc" in capsys.readouterr().out
