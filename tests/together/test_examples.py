"""The cookbook: each program of `contrib/examples` does what it says, on a scripted model and real files and sites."""

from __future__ import annotations

import csv
import json
import mailbox
import re
import sqlite3
import wave
from contextlib import closing
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from contrib.examples import (
    cited_research,
    coding_agent,
    evaluation,
    hand_off,
    mail_triage,
    rag_folder,
    sql_agent,
    support_desk,
)
from tests.together.programs import EXAMPLES, Programs

from locus.core.messages import MediaBlock
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call
from locus_testkit.site import LocalSite

#: What is not a program: tools for `locus run`, and a module of a plugin.
MODULES = {"arithmetic.py", "provider.py"}
FILES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] if len(row) == 1 else row for row in db.execute(sql)]


def read_by_model(model: ScriptedModel) -> str:
    """What the last request says of its last message, tool results included."""
    return str(model.requests[-1].messages[-1].content)


# --- the page -----------------------------------------------------------------------------------


def test_the_page_lists_every_example_once_and_nothing_else() -> None:
    listed = re.findall(
        r"^\| \[([\w.]+)\]\((?:\1)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted([*FILES, "patterns"]) == sorted({*listed})


def test_there_are_fifteen_and_each_has_fewer_than_120_lines() -> None:
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert len(sizes) - len(MODULES) >= 15
    assert {name: size for name, size in sizes.items() if size >= 120} == {}


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".py") and name not in MODULES])
def test_a_program_explains_its_command_line(name: str, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    assert programs.run(name, "--help") == 0
    assert f"usage: {name}" in capsys.readouterr().out
    assert f"python contrib/examples/{name}" in (EXAMPLES / name).read_text(encoding="utf-8")


# --- support_desk.py ----------------------------------------------------------------------------


def refund_script(**arguments: Any) -> ScriptedModel:
    asked = {"number": "4711", "cents": 8450} | arguments
    return ScriptedModel(call("find_order", number="4711"), call("refund", **asked), "It is done.")


def test_a_refund_waits_for_a_person_and_is_made_once(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def leave(prompt: str) -> str:
        questions.append(prompt)
        raise KeyboardInterrupt

    model = refund_script()
    monkeypatch.setattr("builtins.input", leave)
    with pytest.raises(KeyboardInterrupt):
        programs.run("support_desk.py", "Refund 4711, please.", script=model)
    assert 'refund(number="4711", cents=8450)' in questions[0]
    assert rows(tmp_path / "shop.db", "SELECT * FROM refunds") == []

    # The program is gone. Its next start asks the same question, takes no nonsense, and goes on with the answer.
    answers = iter(["perhaps", "allow"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    assert programs.run("support_desk.py", script=model) == 0
    assert rows(tmp_path / "shop.db", "SELECT number, cents FROM refunds") == [("4711", 8450)]
    assert "It is done." in capsys.readouterr().out


def test_a_refund_that_a_person_rejects_is_not_made(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "reject")
    assert programs.run("support_desk.py", "Refund 4711, please.", script=refund_script()) == 0
    assert rows(tmp_path / "shop.db", "SELECT * FROM refunds") == []


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{"cents": 8451}, {"cents": -1}, {"number": "nine"}])
async def test_more_than_the_price_is_not_refunded_whatever_a_person_says(
    arguments: dict[str, Any], tmp_path: Path
) -> None:
    model, desk = refund_script(**arguments), support_desk.Desk(str(tmp_path / "shop.db"))
    agent = support_desk.build(model, tmp_path / "threads.db")
    result = await agent.run("Refund.", thread_id="t", deps=desk)
    await agent.resume(result, "allow", deps=desk)
    assert "cannot be refunded" in read_by_model(model)
    assert rows(tmp_path / "shop.db", "SELECT * FROM refunds") == []


# --- extraction.py ------------------------------------------------------------------------------

GOOD = '{"number": "7", "supplier": "Acme", "day": "2026-03-01", "lines": [%s], "total_cents": %s}'
LAMP = '{"article": "lamp", "cents": 8450}'


def test_letters_become_rows_and_what_does_not_add_up_goes_back(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").mkdir()
    for name in ("a", "b"):
        (tmp_path / "letters" / f"{name}.txt").write_text(f"letter {name}", encoding="utf-8")

    def script(request: ModelRequest) -> list[str]:
        if "letter b" in request.messages[1].text:
            return ["There is no invoice."] * 3
        return [GOOD % (LAMP, 8400), GOOD % (LAMP, 8450)]

    model = ScriptedModel(script=script)
    assert programs.run("extraction.py", "letters", "rows.csv", script=model) == 1

    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file))[1:] == [["a.txt", "7", "Acme", "2026-03-01", "lamp", "8450"]]
    assert "b.txt: OutputInvalid" in capsys.readouterr().err
    assert any("the lines add up to 8450" in request.messages[-1].text for request in model.requests)


# --- cited_research.py --------------------------------------------------------------------------


@pytest.mark.anyio
async def test_an_answer_that_cites_what_was_not_fetched_goes_back() -> None:
    with LocalSite() as site:
        page, other = site.at("/elements/gallium"), site.at("/elements/helium")
        answer = '{"claims": [{"text": "It was found in 1875.", "sources": %s}]}'
        model = ScriptedModel(
            call("web_search", query="gallium"),
            call("fetch_url", url=page),
            answer % f'["{other}"]',
            answer % "[]",
            answer % f'["{page}"]',
        )
        agent = cited_research.build(model, f"searxng:{site.url}", allow=[site.address])
        result = await agent.run("When was gallium found?")

    assert result.parsed is not None
    assert result.parsed.claims[0].sources == [page]
    told = [request.messages[-1].text for request in model.requests]
    assert f"{other} was not fetched" in told[3]
    assert "has no source" in told[4]


# --- coding_agent.py ----------------------------------------------------------------------------

WRONG = "def middle(values):\n    return sorted(values)[len(values) // 2]\n"
RIGHT = "from statistics import median as middle\n"
TEST = """import unittest
from middle import middle
class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(middle([4, 1, 3, 2]), 2.5)
"""
CHECK = "python3 -m unittest -q"


@pytest.mark.anyio
async def test_code_is_mended_when_its_tests_pass_and_not_when_the_model_says_so(tmp_path: Path) -> None:
    (tmp_path / "middle.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "test_middle.py").write_text(TEST, encoding="utf-8")
    model = ScriptedModel(
        "It is mended.",
        call("execute", command=CHECK),
        "It is mended now.",
        call("write_file", path="/test_middle.py", contents=""),
        [call("write_file", path="/middle.py", contents=RIGHT), call("execute", command=CHECK)],
        "middle() is right for an even count.",
    )
    result = await coding_agent.build(model, coding_agent.ChecksFirst(CHECK, tmp_path)).run(
        "middle() is wrong for an even count."
    )

    assert (result.stop_reason, result.text) == ("NoToolCalls", "middle() is right for an even count.")
    told = [request.messages[-1].text for request in model.requests]
    assert "exactly so, after your last change" in told[1]
    assert "failed" in told[3]
    done = [str(each.error or each.result).partition("\n")[0] for each in result.state.tool_executions]
    assert done[0] == "exit code 1"
    assert "a rule forbids to write /test_middle.py" in done[1]
    assert done[2:] == ["/middle.py", "exit code 0"]


def test_code_is_not_mended_by_a_command_that_changes_the_tests(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "test_middle.py").write_text(TEST, encoding="utf-8")
    model = ScriptedModel(call("execute", command="echo > test_middle.py"), *["Done."] * 5)
    assert programs.run("coding_agent.py", "work", "Mend it.", script=model) == 1
    assert "A test was changed" in model.requests[2].messages[-1].text
    assert "Done. [NoToolCalls] A test was changed." in capsys.readouterr().out


# --- sql_agent.py -------------------------------------------------------------------------------


def make_shop(path: Path) -> sql_agent.Database:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE sales (product TEXT, pieces INTEGER)")
        db.executemany("INSERT INTO sales VALUES (?, ?)", [("lamp", 3), ("chair", 5), ("lamp", 4)])
    return sql_agent.Database(path, rows=2, seconds=0.5)


def test_a_question_is_answered_by_sql(programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_shop(tmp_path / "shop.db")
    sql = "SELECT product, sum(pieces) AS n FROM sales GROUP BY product ORDER BY n DESC"
    model = ScriptedModel(call("query", sql=sql), "Lamps, 7 pieces.")
    assert programs.run("sql_agent.py", "shop.db", "What sold best?", script=model) == 0
    assert "CREATE TABLE sales" in model.requests[0].messages[0].text
    assert '["lamp",7]' in read_by_model(model).replace(" ", "")
    assert "Lamps, 7 pieces." in capsys.readouterr().out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("DELETE FROM sales", "not authorized; only one SELECT is allowed"),
        ("DROP TABLE sales", "not authorized; only one SELECT is allowed"),
        ("ATTACH 'other.db' AS other", "only one SELECT is allowed"),
        ("PRAGMA writable_schema = 1", "only one SELECT is allowed"),
        ("SELECT 1; SELECT 2", "only one SELECT is allowed"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT price FROM sales", "no such column: price"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", "stopped after 0.5"),
        ("SELECT * FROM sales", "only the first 2 rows"),
    ],
)
async def test_a_query_only_reads_and_ends(sql: str, answer: str, tmp_path: Path) -> None:
    database = make_shop(tmp_path / "shop.db")
    model = ScriptedModel(call("query", sql=sql), "done")
    await sql_agent.build(model, database).run("?", deps=database)
    assert answer in read_by_model(model)
    assert len(rows(tmp_path / "shop.db", "SELECT * FROM sales")) == 3
    assert not (tmp_path / "other.db").exists()


# --- mail_triage.py -----------------------------------------------------------------------------


def make_mail(folder: Path, *subjects: str) -> mailbox.Maildir:
    box = mailbox.Maildir(folder)
    for subject in subjects:
        mail = EmailMessage()
        mail["From"], mail["Subject"] = "eve@evil.example", subject
        mail.set_content(f"The text of {subject}.")
        box.add(mail)
    return box


def test_mails_are_sorted_and_a_second_run_asks_about_none(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = make_mail(tmp_path / "mail", "Invoice 7", "Help!", "Odd")
    answers = {
        "Invoice 7": '{"folder": "invoices", "reason": "It is one."}',
        "Help!": '{"folder": "urgent", "reason": "They wait.", "draft": "We are on it."}',
        "Odd": "I cannot say.",
    }

    def script(request: ModelRequest) -> list[str]:
        subject = re.search(r"^Subject: (.*)$", request.messages[1].text, re.MULTILINE)
        assert subject is not None
        return [answers[subject[1]]] * 3

    assert programs.run("mail_triage.py", "mail", script=ScriptedModel(script=script)) == 0
    assert [mail["Subject"] for mail in box.get_folder("invoices")] == ["Invoice 7"]
    found = {mail["Subject"]: mail for mail in box.get_folder("urgent")}
    assert {*found} == {"Help!", "Re: Help!"}
    assert found["Re: Help!"].get_payload(decode=True) == b"We are on it."
    assert "D" in found["Re: Help!"].get_flags()
    assert [mail["Subject"] for mail in mailbox.Maildir(tmp_path / "mail")] == ["Odd"]
    assert "inbox" in capsys.readouterr().out

    again = ScriptedModel()
    assert programs.run("mail_triage.py", "mail", script=again) == 0
    assert again.requests == ()


def test_a_mail_in_an_unknown_charset_is_read(tmp_path: Path) -> None:
    mail = b"From: eve@evil.example\nSubject: x\nContent-Type: text/plain; charset=no-such\n\nThe words."
    shown = mail_triage.read_text(message_from_bytes(mail, policy=policy.default))
    assert shown.startswith("From: eve@evil.example\nSubject: x\n\n")
    assert "The words." in shown


# --- evaluation.py ------------------------------------------------------------------------------


CASES = [
    {"id": "calc", "prompt": "17 * 4?", "answer": "68", "tool": "multiply"},
    {"id": "sky", "prompt": "Sky?", "answer": "blue"},
]


def test_an_evaluation_counts_what_is_wrong_and_says_so_by_its_status(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")

    def script(request: ModelRequest) -> list[Any]:
        sums = "17" in request.messages[-1].text or len(request.messages) > 1
        return [call("multiply", a=17, b=4), "It is 68."] if sums else ["It is bluegreen."]

    run = ("evaluation.py", "cases.jsonl", "--tries", 2)
    assert programs.run(*run, "--at-least", 0.5, script=ScriptedModel(script=script)) == 0
    assert programs.run(*run, script=ScriptedModel(script=script)) == 1
    out = capsys.readouterr().out
    assert re.search(r"^calc +2/2", out, re.MULTILINE)
    assert re.search(r"^sky +0/2  expected 'blue', got 'It is bluegreen.'", out, re.MULTILINE)
    assert re.search(r"^all +2/4  50% \(15% to 85%\)", out, re.MULTILINE)


def test_an_answer_without_the_tool_is_a_fault(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "prompt": "?", "answer": "68", "tool": "multiply"}')
    assert programs.run("evaluation.py", "cases.jsonl", script=ScriptedModel("68")) == 1


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"), [(0, 10, 0.0, 0.278), (9, 10, 0.596, 0.982), (10, 10, 0.722, 1.0)]
)
def test_intervals_are_those_of_the_tables(passed: int, of: int, low: float, high: float) -> None:
    assert evaluation.estimate(passed, of) == pytest.approx((low, high), abs=0.001)


# --- hand_off.py --------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_request_is_handed_on_until_a_desk_answers(tmp_path: Path) -> None:
    model = ScriptedModel(
        call("pass_on", to="technical", why="it blinks"),
        call("read_manual", topic="invoice"),
        call("pass_on", to="billing", why="it is about money"),
        call("find_invoice", number="12"),
        "You have paid twice; we pay it back.",
    )
    files = {"invoice 12": "paid twice", "manual: lamp": "Screw it tight."}
    result = await hand_off.build(model).run({"request": "Invoice 12?", "notes": []}, deps=files)
    assert result.values["answer"] == "You have paid twice; we pay it back."
    assert result.values["notes"] == ["front: it blinks", "technical: it is about money"]
    tools = [sorted(spec.name for spec in request.tools) for request in model.requests]
    assert tools[1] == ["pass_on", "read_manual"]
    assert tools[3] == ["find_invoice", "pass_on"]


def test_a_person_answers_what_no_desk_may(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(call("pass_on", to="person", why="a complaint"))
    assert programs.run("hand_off.py", "I am angry.", script=model) == 0
    assert "Interrupted: ['I am angry.\\nfront: a complaint']" in capsys.readouterr().out
    assert programs.run("hand_off.py", "--answer", "We are sorry.", script=ScriptedModel()) == 0
    assert capsys.readouterr().out == "We are sorry.\n"


@pytest.mark.anyio
async def test_desks_cannot_pass_a_request_around_for_ever() -> None:
    model = ScriptedModel(
        *(call("pass_on", to=to, why="not mine") for to in ["billing", "technical"] * 5), after="cycle"
    )
    result = await hand_off.build(model).run({"request": "?", "notes": []}, deps={})
    assert result.stop_reason == "MaxIterations"
    assert len(model.requests) == 6


# --- rag_folder.py ------------------------------------------------------------------------------


def make_texts(folder: Path) -> rag_folder.Index:
    (folder / "docs").mkdir()
    (folder / "docs" / "lamps.md").write_text("# Lamps\n\nThe guarantee of a lamp lasts 24 months.\n", encoding="utf-8")
    (folder / "docs" / "chairs.txt").write_text("Chairs are made of oak.\n", encoding="utf-8")
    (folder / "secret.md").write_text("The guarantee is a secret.\n", encoding="utf-8")
    (folder / "docs" / "link.md").symlink_to(folder / "secret.md")
    return rag_folder.Index(folder / "docs", folder / "index.db")


def test_a_question_is_answered_from_passages_and_an_invented_answer_goes_back(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_texts(tmp_path)
    answer = "The guarantee of a lamp lasts %s months (lamps.md, line 3)."
    model = ScriptedModel(call("search", question="guarantee of lamps?"), answer % 36, answer % 24)
    assert programs.run("rag_folder.py", "docs", "How long is the guarantee?", script=model) == 0
    assert "lamps.md, line 3" in str(model.requests[1].messages)
    assert "36 months" in model.requests[2].messages[-1].text
    assert capsys.readouterr().out == f"2 files read\n{answer % 24} (grounded)\n"


def test_an_index_reads_what_changed_and_forgets_what_is_gone(tmp_path: Path) -> None:
    index = make_texts(tmp_path)
    assert (index.refresh(), index.refresh()) == (2, 0)
    assert [found["source"] for found in index.search("GUARANTEES", 5)] == ["lamps.md, line 3"]
    (tmp_path / "docs" / "lamps.md").unlink()
    (tmp_path / "docs" / "chairs.txt").write_text("Chairs have a guarantee.", encoding="utf-8")
    assert index.refresh() == 1
    assert [found["text"] for found in index.search("guarantee", 5)] == ["Chairs have a guarantee."]


@pytest.mark.parametrize("question", ['"', "NOT", "text:", "a AND (", "", "*", "NEAR("])
def test_a_question_is_not_read_as_the_syntax_of_the_index(question: str, tmp_path: Path) -> None:
    index = make_texts(tmp_path)
    index.refresh()
    assert isinstance(index.search(question, 5), list)


# --- voice_note.py ------------------------------------------------------------------------------


def make_sound(path: Path) -> bytes:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0\0" * 800)
    return path.read_bytes()


def test_a_note_is_heard_by_a_model_and_becomes_a_task(programs: Programs, tmp_path: Path) -> None:
    data = make_sound(tmp_path / "note.wav")
    unknown, known = ({"who": who, "what": "call the bank", "due": "2026-03-02"} for who in ("Eve", "Bob"))
    model = ScriptedModel(call("add_task", **unknown), call("add_task", **known), "Bob calls the bank.")
    assert programs.run("voice_note.py", "note.wav", script=model) == 0
    [block] = model.requests[0].messages[1].content
    assert isinstance(block, MediaBlock)
    assert (block.kind, block.media_type, block.data) == ("audio", "audio/wav", data)
    assert "expected one of Ann, Bob" in str(model.requests[1].messages[-1].content)
    assert rows(tmp_path / "tasks.db", "SELECT who, what, due FROM tasks") == [("Bob", "call the bank", "2026-03-02")]


def test_a_note_is_transcribed_by_a_program_for_models_that_read(programs: Programs, tmp_path: Path) -> None:
    make_sound(tmp_path / "note 1.wav")
    # Stands in for a recogniser, which is large: it shows how one is called, and prints what it was given.
    (tmp_path / "hear.py").write_text("import sys; print('Ann, buy milk.', sys.argv[1:])", encoding="utf-8")
    model = ScriptedModel(call("add_task", who="Ann", what="buy milk", due=None), "Ann buys milk.")
    assert programs.run("voice_note.py", "note 1.wav", "--transcribe", "python3 hear.py -f", script=model) == 0
    assert model.requests[0].messages[1].text == "A voice note, transcribed: Ann, buy milk. ['-f', 'note 1.wav']"
    assert rows(tmp_path / "tasks.db", "SELECT who, due FROM tasks") == [("Ann", None)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["note.txt"], "is not a sound"), (["note.wav", "--transcribe", "false"], "gave no text for note.wav")],
)
def test_a_note_that_cannot_be_read_is_an_error(
    arguments: list[str], said: str, programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_sound(tmp_path / "note.wav")
    assert programs.run("voice_note.py", *arguments, script=ScriptedModel()) == 1
    assert said in capsys.readouterr().err


# --- own_plugin.py ------------------------------------------------------------------------------


def test_a_quota_holds_over_runs(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    two = [call("send_text", to="Ann", text="late"), call("send_text", to="Bob", text="late")]
    assert programs.run("own_plugin.py", "Text both.", "--a-day", 3, script=ScriptedModel(two, "Sent.")) == 0
    model = ScriptedModel(two, "Bob was not texted.")
    assert programs.run("own_plugin.py", "Text both.", "--a-day", 3, script=model) == 0
    assert "the quota of 3 calls of send_* a day is used up" in read_by_model(model)
    out = capsys.readouterr().out
    assert out.count("to Ann: late") == 2
    assert out.count("to Bob: late") == 1
    assert "Bob was not texted. ('send_text',)" in out


def test_a_quota_that_cannot_be_read_lets_no_call_run(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "quota.db").write_text("not a database, and longer than a header " * 40, encoding="utf-8")
    model = ScriptedModel(call("send_text", to="Ann", text="late"), "It was not sent.")
    assert programs.run("own_plugin.py", "Text Ann.", script=model) == 0
    assert "Rejected" in read_by_model(model)
