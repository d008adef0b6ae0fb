"""Cassettes: what was recorded is replayed to the letter, secrets stay out, and what differs is explained."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus import Agent, Message, ModelResponse, Role, Usage, tool
from locus.core.errors import ContextOverflow, ModelError
from locus.core.events import ModelChunkEvent
from locus.core.termination import CostLimit, MaxIterations
from locus.models import Chunk, Model, ModelRequest, ModelSettings, OnChunk, Price
from locus.tools.definition import ToolExample, ToolSpec
from locus_testkit import (
    Cassette,
    CassetteError,
    CassetteExhausted,
    CassetteMismatch,
    CassetteMissing,
    CassetteUnused,
    ScriptedModel,
    Scrubber,
    call,
    never,
)
from locus_testkit import strategies as values

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"
USED = Usage(prompt_tokens=3, completion_tokens=4)
PLAIN = Scrubber(environ={})


def asking(text: str, *tools: ToolSpec, **settings: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(Role.USER, text),), tools=tools, settings=ModelSettings(**settings))


async def collect(model: Model, request: ModelRequest) -> tuple[ModelResponse, list[Chunk]]:
    chunks: list[Chunk] = []

    async def heard(chunk: Chunk) -> None:
        chunks.append(chunk)

    return await model.complete(request, heard), chunks


async def record(path: Path, model: Model, *requests: ModelRequest, scrubber: Scrubber = PLAIN) -> list[Any]:
    """Record some calls, streamed, and what came of them."""
    with Cassette(path, "all", scrubber=scrubber) as cassette:
        return [await outcome(cassette.model(model), request) for request in requests]


async def outcome(model: Model, request: ModelRequest) -> Any:
    try:
        return await collect(model, request)
    except Exception as e:  # noqa: BLE001  what is compared
        return type(e), str(e), {k: v for k, v in vars(e).items() if not k.startswith("__")}


@tool
def temperature(city: str) -> int:
    """Give the temperature of a city."""
    return 21


def weather(model: Model) -> Agent[Any, Any]:
    return Agent(model, tools=[temperature])


# -- replay ---------------------------------------------------------------------------------------


async def test_an_agent_runs_on_what_was_recorded_without_its_provider(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "weather.jsonl"
    script = ScriptedModel(call("temperature", city="Paris"), "It is 21 degrees.", name="acme:big", chunks=True)
    with Cassette(path, "once") as cassette:
        assert cassette.recording
        live = [e async for e in weather(cassette.model(script)).run("How warm?")]
    with Cassette(path, "once") as cassette:
        assert not cassette.recording
        run = weather(cassette.model("acme:big")).run("How warm?")
        replayed = [e async for e in run]
    assert run.result.text == "It is 21 degrees."
    assert run.result.usage.total_tokens == 30
    pieces = [(e.text, e.kind) for e in live if isinstance(e, ModelChunkEvent)]
    assert pieces == [(e.text, e.kind) for e in replayed if isinstance(e, ModelChunkEvent)] != []
    assert len(script.requests) == 2


async def test_the_file_is_short_lines_that_a_review_can_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    script = ScriptedModel(call("temperature", city="Köln"), "21 degrees.", name="acme:big")
    with Cassette(path, "all") as cassette:
        await weather(cassette.model(script)).run("How warm?")
    head, first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert head == {"locus_cassette": 1}
    assert list(first) == ["n", "request", "response"]
    assert "Köln" in path.read_text()
    assert first["request"]["messages"] == [{"role": "user", "content": [{"type": "text", "text": "How warm?"}]}]
    assert second["request"]["begins"] == {"as": 1, "messages": 1}
    assert [m["role"] for m in second["request"]["messages"]] == ["assistant", "tool"]
    assert second["request"]["tools"] == {"as": 1}
    before = path.read_bytes()
    with Cassette(path, "all") as cassette:
        again = ScriptedModel(call("temperature", city="Köln"), "21 degrees.", name="acme:big")
        await weather(cassette.model(again)).run("How warm?")
    assert path.read_bytes() == before, "the same run gives the same file"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(values.model_requests(), values.turns()), max_size=4), st.randoms(use_true_random=False))
def test_whatever_was_recorded_is_replayed_in_any_order(calls: list[tuple[Any, Any]], order: random.Random) -> None:
    async def check() -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "c.jsonl"
            # Each is asked once, so that its answer is the one and only; no deadline, which a script keeps.
            requests = [evolve(r, purpose=f"p{n}", deadline=None) for n, (r, _) in enumerate(calls)]
            script = ScriptedModel(*(turn for _, turn in calls), chunks=3, name="acme:big")
            live = await record(path, script, *requests)
            numbers = list(range(len(calls)))
            order.shuffle(numbers)
            with Cassette(path, scrubber=PLAIN) as cassette:
                for n in numbers:
                    assert await outcome(cassette.model("acme:big"), requests[n]) == live[n]

    anyio.run(check)


class Sized(ModelError):
    """An error of a provider, with something of its own."""

    def __init__(self, message: str, *, limit: int) -> None:
        self.limit = limit
        super().__init__(message, provider="acme", status=413)


async def test_errors_come_back_with_their_types_and_what_they_carry(tmp_path: Path) -> None:
    busy = ModelError("busy", provider="acme", status=529, request_id="r1", retry_after=1.5, usage=USED)
    errors = [busy, ContextOverflow("long", provider="acme"), Sized("large", limit=7), TimeoutError("late")]
    script = ScriptedModel(*errors, name="acme:big")
    requests = [asking(str(n)) for n in range(4)]
    live = await record(tmp_path / "c.jsonl", script, *requests)
    with Cassette(tmp_path / "c.jsonl") as cassette:
        assert [await outcome(cassette.model("acme:big"), each) for each in requests] == live
    assert [kind for kind, _, _ in live] == [ModelError, ContextOverflow, Sized, TimeoutError]
    assert live[0][2]["usage"] == USED


async def test_an_error_whose_type_is_not_there_is_a_model_error(tmp_path: Path) -> None:
    await record(tmp_path / "c.jsonl", ScriptedModel(Sized("large", limit=7), name="a:b"), asking("x"))
    text = (tmp_path / "c.jsonl").read_text()
    (tmp_path / "c.jsonl").write_text(text.replace("Sized", "Gone"))
    with Cassette(tmp_path / "c.jsonl") as cassette, pytest.raises(ModelError, match=r"large \(recorded as .*:Gone"):
        await cassette.model("a:b").complete(asking("x"))


async def test_the_same_request_gets_its_answers_in_their_order(tmp_path: Path) -> None:
    script = ScriptedModel(ModelError("busy", status=503), "first", "second", name="a:b")
    live = await record(tmp_path / "c.jsonl", script, *[asking("x")] * 3)
    with Cassette(tmp_path / "c.jsonl") as cassette:
        assert [await outcome(cassette.model("a:b"), asking("x")) for _ in range(3)] == live


async def test_a_call_that_was_cancelled_does_not_answer(tmp_path: Path) -> None:
    with Cassette(tmp_path / "c.jsonl", "all") as cassette:
        model = cassette.model(ScriptedModel(never, name="a:b"))
        with anyio.move_on_after(0):
            await model.complete(asking("x"))
    with Cassette(tmp_path / "c.jsonl") as cassette:
        late = evolve(asking("x"), deadline=anyio.current_time() - 1)
        with pytest.raises(ModelError, match="deadline"):
            await cassette.model("a:b").complete(late)


async def test_who_listens_only_in_the_replay_hears_the_text_at_once(tmp_path: Path) -> None:
    with Cassette(tmp_path / "c.jsonl", "all") as cassette:
        await cassette.model(ScriptedModel("All of it.", name="a:b", chunks=True)).complete(asking("x"))
    with Cassette(tmp_path / "c.jsonl") as cassette:
        _, chunks = await collect(cassette.model("a:b"), asking("x"))
    assert chunks == [Chunk("All of it.")]


async def test_prices_are_those_of_the_recording(tmp_path: Path) -> None:
    price = Price(prompt=1.0, completion=2.0, cached=0.5)
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b", price=price), asking("x"))
    cassette = Cassette(tmp_path / "c.jsonl")
    assert cassette.model("a:b").price == price
    Agent(cassette.model("a:b"), termination=CostLimit(1.0) | MaxIterations(3))
    assert cassette.model("a:c").price is None


async def test_what_a_provider_offers_beside_the_protocol_is_there_while_recording(tmp_path: Path) -> None:
    class Rich:
        name = "a:b"
        session = "a session"

        async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
            raise AssertionError

    assert Cassette(tmp_path / "c.jsonl", "all").model(Rich()).session == "a session"
    await record(tmp_path / "c.jsonl", ScriptedModel(name="a:b"))
    assert not hasattr(Cassette(tmp_path / "c.jsonl").model("a:b"), "session")


# -- runs side by side ----------------------------------------------------------------------------


async def test_runs_side_by_side_get_their_own_answers_in_whatever_order(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> list[Any]:
        city = request.messages[0].text
        return [call("temperature", city=city), f"Warm in {city}."]

    cities = ["Paris", "Rome", "Oslo", "Ulm"]

    async def all_of(model: Model, order: list[str]) -> dict[str, str]:
        agent, said = weather(model), dict[str, str]()

        async def one(city: str) -> None:
            said[city] = (await agent.run(city)).text

        async with anyio.create_task_group() as group:
            for city in order:
                group.start_soon(one, city)
        return said

    wanted = {city: f"Warm in {city}." for city in cities}
    with Cassette(tmp_path / "c.jsonl", "all") as cassette:
        assert await all_of(cassette.model(ScriptedModel(script=script, name="a:b")), cities) == wanted
    with Cassette(tmp_path / "c.jsonl") as cassette:
        assert await all_of(cassette.model("a:b"), cities[::-1]) == wanted


# -- secrets --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=12), st.text(max_size=12), st.integers(1, 9), st.sampled_from([KEY, 'qu"o\\te/ä ö', "x" * 40]))
def test_no_secret_reaches_the_file_wherever_it_is(before: str, after: str, size: int, secret: str) -> None:
    scrubber = Scrubber([secret], environ={})

    async def check() -> None:
        with TemporaryDirectory() as folder:
            path, text = Path(folder) / "c.jsonl", f"{before}{secret}{after}"
            turns: list[Any] = [text, [call("say", what=text), text], ModelError(text, status=400)]
            script = ScriptedModel(*turns, name="a:b", chunks=size)
            spec = ToolSpec(name="say", description=text, parameters={"type": "object", "title": text})
            requests = [asking(f"{n}{text}", spec, stop=(text,)) for n in range(3)]
            await record(path, script, *requests, scrubber=scrubber)
            written = path.read_text()
            assert secret not in written
            assert json.dumps(secret)[1:-1] not in written
            with Cassette(path, scrubber=scrubber) as cassette:
                for request in requests:
                    await outcome(cassette.model("a:b"), request)

    anyio.run(check)


async def test_environment_variables_that_are_called_like_secrets_are_some() -> None:
    environ = {"ACME_API_KEY": KEY, "DB_PASSWORD": "hunter22", "MY_TOKENS": "abcdef", "PATH": "/usr/bin", "A_KEY": "x"}
    scrubber = Scrubber(environ=environ)
    assert scrubber.text(f"{KEY} hunter22 abcdef /usr/bin x") == "*** *** *** /usr/bin x"
    assert scrubber.text("pg://me:secret@host?token=abc") == "pg://me:***@host?token=***"
    assert Scrubber(environ={}, also=str.upper).text("a") == "A"
    assert KEY not in repr(scrubber)


async def test_settings_that_are_called_like_headers_and_keys_stay_out(tmp_path: Path) -> None:
    extras = {
        "extra_headers": {"Authorization": "Bearer abc"},
        "api_key": "abc",
        "top_k": 3,
        "in": {"session_token": "a"},
    }
    request = asking("x", extras=extras, max_tokens=5, temperature=0.5)
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), request)
    line = json.loads((tmp_path / "c.jsonl").read_text().splitlines()[1])
    assert line["request"]["settings"] == {
        "temperature": 0.5,
        "max_tokens": 5,
        "extras": {"extra_headers": "***", "api_key": "***", "top_k": 3, "in": {"session_token": "***"}},
    }
    with Cassette(tmp_path / "c.jsonl") as cassette:
        await cassette.model("a:b").complete(request)


async def test_a_secret_that_cannot_be_hidden_keeps_the_file_from_being_written(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.jsonl", "all", scrubber=Scrubber(["locus_cassette", '"n": 1'], environ={}))
    await cassette.model(ScriptedModel("Hi.", name="a:b")).complete(asking("x"))
    with pytest.raises(CassetteError, match="call 1 holds a secret"):
        cassette.end()
    assert not (tmp_path / "c.jsonl").exists()


# -- what differs ---------------------------------------------------------------------------------


async def test_a_request_that_was_not_recorded_is_reported_by_its_difference(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    script = ScriptedModel("Cold.", "Warm.", name="a:b")
    await record(path, script, asking("Oslo\nin winter"), asking("Rome\nin winter\nor spring"))
    cassette = Cassette(path)
    with pytest.raises(CassetteMismatch) as caught:
        await cassette.model("a:b").complete(asking("Rome\nin summer\nor spring"))
    assert str(caught.value) == (
        f"{path}: request 1 of this test was not recorded; the nearest that was not replayed yet is call 2 "
        "(- recorded, + asked):\n"
        " messages[0].content[0].text, line 1: Rome\n"
        "-messages[0].content[0].text, line 2: in winter\n"
        "+messages[0].content[0].text, line 2: in summer\n"
        " messages[0].content[0].text, line 3: or spring\n"
        "to record again: pytest --locus-record=all"
    )
    assert cassette.failure is caught.value
    with pytest.raises(CassetteMismatch):
        cassette.end()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"description": "Look again."}, "+tools.look.description: 'Look again.'"),
        ({"parameters": {"type": "object", "required": ["x"]}}, "+tools.look.parameters.required[0]: 'x'"),
        ({"name": "see"}, "+tools.see.description: 'Look.'"),
        ({"examples": [ToolExample(user="u", arguments={})]}, "+tools.look.examples[0].user: 'u'"),
    ],
)
async def test_a_changed_tool_is_reported_by_its_difference(tmp_path: Path, change: dict[str, Any], line: str) -> None:
    look = ToolSpec(name="look", description="Look.", parameters={"type": "object"})
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), asking("x", look))
    with pytest.raises(CassetteMismatch) as caught:
        await Cassette(tmp_path / "c.jsonl").model("a:b").complete(asking("x", evolve(look, **change)))
    assert line in str(caught.value).splitlines()


@pytest.mark.parametrize(
    "other",
    [
        asking("x", temperature=1.0),
        evolve(asking("x"), purpose="judge"),
        evolve(asking("x"), messages=(Message(Role.SYSTEM, "s"), Message(Role.USER, "x"))),
        asking("x", *(ToolSpec(name=n, description="", parameters={}) for n in "ba")),
    ],
    ids=["settings", "purpose", "messages", "order of tools"],
)
async def test_everything_that_a_model_sees_counts(tmp_path: Path, other: ModelRequest) -> None:
    tools = [ToolSpec(name=n, description="", parameters={}) for n in "ab"] if other.tools else []
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), asking("x", *tools))
    with pytest.raises(CassetteMismatch):
        await Cassette(tmp_path / "c.jsonl").model("a:b").complete(other)
    with pytest.raises(CassetteMismatch, match=r"\+model: 'a:c'"):
        await Cassette(tmp_path / "c.jsonl").model("a:c").complete(asking("x", *tools))


async def test_a_request_beyond_the_end_says_whether_it_was_there_before(tmp_path: Path) -> None:
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), asking("x"))
    cassette = Cassette(tmp_path / "c.jsonl")
    model = cassette.model("a:b")
    await model.complete(asking("x"))
    with pytest.raises(CassetteExhausted, match="recorded as call 1, which was replayed already"):
        await model.complete(asking("x"))
    with pytest.raises(CassetteExhausted, match=r"request 3 .* all 1 recorded calls") as caught:
        await model.complete(asking("y"))
    assert "+messages[0].content[0].text: 'y'" in str(caught.value)


async def test_what_was_not_asked_for_is_reported_unless_that_may_be(tmp_path: Path) -> None:
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", "Ho.", name="a:b"), asking("x"), asking("y"))
    cassette = Cassette(tmp_path / "c.jsonl")
    await cassette.model("a:b").complete(asking("x"))
    with pytest.raises(CassetteUnused, match=r"1 of 2 recorded calls .*\n  call 2 \(a:b, think, 1 messages\)"):
        cassette.end()
    with Cassette(tmp_path / "c.jsonl", partial=True) as cassette:
        assert cassette.unused == 2


async def test_what_may_differ_can_be_left_out(tmp_path: Path) -> None:
    def undated(form: dict[str, Any]) -> dict[str, Any]:
        return {**form, "messages": form["messages"][-1:]}

    one, other = (
        ModelRequest(messages=(Message(Role.SYSTEM, f"Today is {day}."), Message(Role.USER, "x")))
        for day in ("Monday", "Tuesday")
    )
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), one)
    with Cassette(tmp_path / "c.jsonl", match=undated) as cassette:
        assert (await cassette.model("a:b").complete(other)).message.text == "Hi."


async def test_boundaries_of_quoted_data_may_differ(tmp_path: Path) -> None:
    one, other = (asking(f"Data:\n<<<data {code * 16}\ntext\n{code * 16}>>>\nJudge.") for code in "af")
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), one)
    with Cassette(tmp_path / "c.jsonl") as cassette:
        await cassette.model("a:b").complete(other)


# -- files ----------------------------------------------------------------------------------------


async def test_a_cassette_that_is_missing_says_how_to_record_it(tmp_path: Path) -> None:
    with pytest.raises(CassetteMissing, match="--locus-record=once"):
        Cassette(tmp_path / "c.jsonl")
    with pytest.raises(ValueError, match="mode must be one of 'none', 'once', 'all', got 'some'"):
        Cassette(tmp_path / "c.jsonl", "some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"locus_cassette": 2}\n', "its version must be 1, got 2"),
        ("{}\n", "line 1"),
        ("no json\n", "line 1"),
        ('{"locus_cassette": 1}\n{"n": 1}\n', "line 2"),
        ('{"locus_cassette": 1}\n{"n": 1, "request": {"messages": [], "begins": {"as": 4}}}\n', "line 2"),
        ('{"locus_cassette": 1}\n\ufffd', "line 2"),
    ],
)
async def test_a_broken_cassette_says_where(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.jsonl").write_text(text)
    with pytest.raises(CassetteError, match=said):
        Cassette(tmp_path / "c.jsonl")


async def test_a_test_that_failed_leaves_the_old_cassette(tmp_path: Path) -> None:
    await record(tmp_path / "c.jsonl", ScriptedModel("Hi.", name="a:b"), asking("x"))
    before = (tmp_path / "c.jsonl").read_bytes()
    with pytest.raises(ZeroDivisionError), Cassette(tmp_path / "c.jsonl", "all") as cassette:  # noqa: PT012
        await cassette.model(ScriptedModel("Other.", name="a:b")).complete(asking("x"))
        raise ZeroDivisionError
    assert (tmp_path / "c.jsonl").read_bytes() == before
