"""Recorded answers: given again to the same requests, and to no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from locus import Agent, ModelError, ModelRequest, Role, ToolContext, tool
from locus.core.errors import InputError
from locus_plugin_eval import Case, Report, Suite, Tape, compare, evaluate
from locus_plugin_eval.checks import Contains, Judge
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

SUITE = Suite(
    name="desk",
    cases=(
        Case(id="lamp", prompt=("lamp",), checks=(Contains(("12 EUR",)),)),
        Case(id="chair", prompt=("chair",), checks=(Contains(("EUR",)),)),
    ),
    repeats=2,
)


def make(model: Any, result: str = "{} costs 12 EUR", **options: Any) -> Agent[Any, Any]:
    @tool
    def price(item: str) -> str:
        """Look up a price."""
        return result.format(item)

    return Agent(model, tools=[price], name="shop", **options)


def script(request: ModelRequest) -> list[Any]:
    said = next(message.text for message in request.messages if message.role is Role.USER)
    return [call("price", item=said), f"{said}: 12 EUR."]


def live() -> ScriptedModel:
    return ScriptedModel(script=script, after="cycle")


async def record(path: Path, agent: Agent[Any, Any], suite: Suite = SUITE, **more: Any) -> Report:
    return await evaluate(agent, suite, tape=Tape(path, replays=False), **more)


async def replay(path: Path, agent: Agent[Any, Any], suite: Suite = SUITE, **more: Any) -> Report:
    return await evaluate(agent, suite, tape=Tape(path, replays=True), **more)


async def test_a_replay_asks_no_model_and_comes_to_the_same(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    before = await record(tape, make(live()))
    silent = ScriptedModel()
    after = await replay(tape, make(silent))

    assert silent.requests == ()
    assert [(t.case, t.repeat, t.status, t.text, t.tokens) for t in after.trials] == [
        (t.case, t.repeat, t.status, t.text, t.tokens) for t in before.trials
    ]
    assert (after.replayed, after.missing, after.seconds) == (True, (), None)
    assert after.find_unmet() == ()
    assert compare(before, after).ties == 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"system_prompt": "Be brief."}, "request 1 to scripted:model is not on the tape: other than recorded: "),
        (
            {"result": "{} costs 13 EUR"},
            "request 2 to scripted:model is not on the tape: other than recorded: mess",
        ),
        ({"name": "scripted:other"}, "request 1 to scripted:other is not on the tape: other than recorded: model"),
    ],
)
async def test_a_request_that_was_not_made_is_missing_and_never_guessed(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    tape = tmp_path / "tape.jsonl"
    before = await record(tape, make(live()))
    options = {"name": "scripted:model"} | changed
    model = ScriptedModel(name=options.pop("name"))
    after = await replay(tape, make(model, **options))

    assert model.requests == ()
    assert [trial.status for trial in after.trials] == ["missing"] * 4
    assert after.trials[0].missing.startswith(why)
    assert (after.tally.size, after.tally.share) == (0, None)
    assert after.find_unmet() == ("4 of 4 trials need answers that are not on the tape",)
    found = compare(before, after)
    assert (found.left_out, found.ties, found.difference, found.p) == (("lamp", "chair"), 0, None, 1.0)


async def test_a_case_that_was_not_recorded_is_missing(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    await record(tape, make(live()), SUITE.select(["lamp"]))
    after = await replay(tape, make(ScriptedModel()))
    assert [trial.status for trial in after.trials] == ["passed", "passed", "missing", "missing"]
    assert after.trials[2].missing.endswith("nothing was recorded at this step")


async def test_a_recorded_failure_is_a_failure_again(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    before = await record(tape, make(ScriptedModel(ModelError("the provider is down"), after="repeat")))
    after = await replay(tape, make(ScriptedModel()))
    assert [trial.status for trial in before.trials] == [trial.status for trial in after.trials] == ["error"] * 4
    assert "the provider is down" in after.trials[0].checks[0].detail


async def test_repeats_have_answers_of_their_own(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    suite = Suite(name="x", cases=(Case(id="a", prompt=("Hi.",)),), repeats=3, concurrency=1)
    await record(tape, Agent(ScriptedModel("one", "two", "three")), suite)
    after = await replay(tape, Agent(ScriptedModel()), suite)
    assert [trial.text for trial in after.trials] == ["one", "two", "three"]


async def test_calls_of_judges_are_on_the_tape(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    suite = Suite(name="x", cases=(Case(id="a", prompt=("Hi.",), checks=(Judge("It is polite."),)),), repeats=2)
    verdict = '{"reason": "It is.", "pass": true}'
    judge = ScriptedModel(verdict, after="repeat", name="toy:judge")
    await record(tape, Agent(ScriptedModel("Hello.", after="repeat")), suite, judge=judge)
    silent = ScriptedModel(name="toy:judge")
    after = await replay(tape, Agent(ScriptedModel()), suite, judge=silent)
    assert [trial.status for trial in after.trials] == ["passed"] * 2
    assert silent.requests == ()
    other = await replay(tape, Agent(ScriptedModel()), suite, judge=ScriptedModel(name="toy:other"))
    assert [trial.status for trial in other.trials] == ["missing"] * 2
    assert "to toy:other for eval.judge is not on the tape" in other.trials[0].missing


async def test_a_run_that_a_tool_starts_makes_a_replay_missing(tmp_path: Path) -> None:
    child = Agent(ScriptedModel("Forty.", after="repeat"))

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        return str((await ctx.run_child(child, "How many?")).text)

    def parent(*turns: Any) -> Agent[Any, Any]:
        return Agent(ScriptedModel(*turns), tools=[ask])

    tape = tmp_path / "tape.jsonl"
    suite = Suite(name="x", cases=(Case(id="a", prompt=("Hi.",)),))
    assert (await record(tape, parent(call("ask"), "Forty."), suite)).trials[0].status == "passed"
    (trial,) = (await replay(tape, parent(), suite)).trials
    assert trial.missing == "1 calls of models by runs that tools have started are not on the tape"


# -- the file -------------------------------------------------------------------------------------


async def test_a_tape_whose_process_died_is_recorded_further(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    await record(tape, make(live()), SUITE.select(["lamp"]))
    whole = tape.read_bytes()
    with tape.open("ab") as file:
        file.write(whole[:30])
    assert len(Tape(tape, replays=True)) == 4
    await record(tape, make(live()), SUITE.select(["chair"]))
    assert tape.read_bytes().startswith(whole)
    assert {trial.status for trial in (await replay(tape, make(ScriptedModel()))).trials} == {"passed"}


def test_a_file_that_is_not_a_tape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.jsonl cannot be read: No such file"):
        Tape(tmp_path / "none.jsonl", replays=True)
    with pytest.raises(InputError, match=r"cannot be written"):
        Tape(tmp_path / "no" / "folder.jsonl", replays=False)
    for text in ("{}", "no", json.dumps({"format": 2})):
        path = tmp_path / "bad.jsonl"
        path.write_text(f"{text}\n")
        with pytest.raises(InputError, match=r"bad.jsonl:1: expected a line of a tape"):
            Tape(path, replays=True)


def test_a_tape_says_what_it_is(tmp_path: Path) -> None:
    assert repr(Tape(tmp_path / "t.jsonl", replays=False)).endswith("t.jsonl: records, 0 answers>")


async def test_what_is_recorded_holds_no_request(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    agent = Agent(ScriptedModel("Hello."), system_prompt="The password is hunter2.")
    await record(tape, agent, Suite(name="x", cases=(Case(id="a", prompt=("A secret prompt.",)),)))
    assert "hunter2" not in tape.read_text()
    assert "secret" not in tape.read_text()
