"""A result can be printed and read: the answer, why the run stopped, what it used, its calls."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from tests.loop.kit import add, confirm

from locus import Agent, Usage
from locus.models import Price
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@attrs.frozen
class Flight:
    number: str


async def test_a_printed_result_is_a_page() -> None:
    used = Usage(prompt_tokens=1200, completion_tokens=30, cached_tokens=1000)
    model = ScriptedModel(
        call("add", a=1, b=2), call("add", a="x"), "It is three.", usage=used, price=Price(prompt=1.0, completion=2.0)
    )
    result = await Agent(model, tools=[add]).run("1 + 2?")
    page = str(result).splitlines()
    assert page[:3] == [
        "It is three.",
        "",
        "stopped: NoToolCalls (the model has answered)",
    ]
    assert page[3].startswith("usage: 3 iterations, 3,600 tokens in (3,000 cached), 90 out, $0.00")
    assert page[4:6] == ["calls: 2", "  add(a=1, b=2) -> '3'"]
    assert page[6].startswith("  add(a='x') -> failed: ArgumentError")
    assert len(page) == 7


async def test_what_failed_and_what_is_asked_is_on_the_page() -> None:
    failed = str(await Agent(ScriptedModel(RuntimeError("broken"))).run("x"))
    assert failed.startswith("(no answer)\n\nstopped: ModelError\nerror: ")
    assert "broken" in failed
    asking = str(await Agent(ScriptedModel(call("confirm", what="delete")), tools=[confirm]).run("x"))
    assert "asks: Shall I delete?" in asking
    typed = str(await Agent(ScriptedModel('{"number": "A1"}'), output_schema=Flight).run("x"))
    assert "parsed: Flight(number='A1')" in typed


async def test_a_page_is_short_however_long_the_run_was() -> None:
    calls = [call("add", a=n) for n in range(50)]
    result = await Agent(ScriptedModel(calls, "done"), tools=[add]).run("x" * 100_000)
    assert len(str(result).splitlines()) < 30
    assert "and 30 more" in str(result)
    assert "and 30 more" in result._repr_html_()


async def test_text_of_a_model_drives_neither_a_terminal_nor_a_notebook_nor_rich() -> None:
    model = ScriptedModel("\x1b[31mred <script>alert(1)</script> [bold]x[/bold] \udc80")
    result: Any = await Agent(model).run("x")
    assert "\x1b" not in str(result)
    assert "\\x1b[31mred" in str(result)
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


async def test_rich_gets_the_page_as_text_and_not_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    class Text(str):
        """What rich.text.Text is to the kernel: called with plain text."""

    monkeypatch.setitem(sys.modules, "rich.text", SimpleNamespace(Text=Text))
    result: Any = await Agent(ScriptedModel("[bold]x")).run("x")
    assert type(result.__rich__()) is Text
    assert result.__rich__() == str(result)


async def test_rich_s_page_is_there_for_those_who_have_not_imported_rich_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    result: Any = await Agent(ScriptedModel("Hello.")).run("x")
    monkeypatch.delitem(sys.modules, "rich.text", raising=False)
    assert str(result.__rich__()) == str(result)


def test_the_page_costs_nothing_until_it_is_asked_for() -> None:
    program = "import sys, locus.result; print([m for m in ('html', 'rich', 'locus.schema.text') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
