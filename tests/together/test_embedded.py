"""Research and a deep agent on the embedded model, over real documents. No test here asserts a model's judgement.

The documents are the pages about the chemical elements, and those topics of Python's reference that Python carries with
it for `help`. Contexts are short, each model is loaded once, and decoding is greedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from attrs import frozen
from tests.durability.effort import THOROUGH

from locus import Agent, tool
from locus.models import Model, ModelRequest, ModelResponse, OnChunk
from locus_deepagent import create_deepagent, create_research_workflow
from locus_deepagent.research.keys import (
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_GROUNDING_FACTS,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_SUMMARY,
)
from locus_plugin_eval import Case, Suite, Tape, evaluate
from locus_plugin_eval.checks import Judge
from locus_plugin_llamacpp.engine import close_all
from locus_plugin_llamacpp.model import LlamaCppModel, make
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_plugin_sqlite import SqliteStore
from locus_plugin_subagents import SubAgentDef
from locus_plugin_web import Fetcher, WebSettings, make_web_tools
from locus_testkit import ScriptedModel
from locus_testkit.site import LocalSite, Page, element_pages

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

_TOPICS = ("assert", "break", "continue", "del", "global", "lambda", "pass", "return", "while", "with", "yield")
FILE_TOOLS = {"edit_file", "glob", "grep", "ls", "read_file", "write_file"}
_ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """What a model answers does not depend on it, and the plugins' own tests run on both."""
    return "asyncio"


SETTINGS = LlamaCppSettings(n_ctx=4096, max_tokens=200, temperature=0.0, seed=1, progress=False)


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaCppModel]:
    yield make("qwen2.5-coder-1.5b", SETTINGS)
    close_all()


@pytest.fixture(scope="module")
def small_model() -> Iterator[LlamaCppModel]:
    """For a prompt that is twice as long."""
    yield make("qwen2.5-coder-0.5b", SETTINGS)
    close_all()


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with LocalSite([*element_pages(), *(_page(topic, topics[topic]) for topic in _TOPICS)]) as made:
        yield made


def _page(topic: str, text: str) -> Page:
    paragraphs = "".join(f"<p>{escape(each)}</p>" for each in text.split("\n\n"))
    return Page(path=f"/reference/{topic}", title=f"Python: the {topic} statement", body=paragraphs)


LOOPBACK = "127.0.0.1"

#: What is asked until one answer cites what was read: a small model does not always search, and not always cite, and
#: what it says differs between kinds of processors. In the proofs all are asked, and two must.
QUESTIONS = [
    "Which exception does the assert statement of Python raise?",
    "Who discovered gallium?",
    "What is the density of lithium in g/cm³?",
]


async def test_what_a_researched_answer_cites_was_read(model: LlamaCppModel, site: LocalSite) -> None:
    wanted, well_cited = (2 if THOROUGH else 1), []
    for question in QUESTIONS:
        site.received.clear()
        values = await _research(question, model, site)
        evidence, cited = values[KEY_EVIDENCE], {number for claim in values[KEY_CLAIMS] for number in claim["evidence"]}
        assert cited <= set(range(1, len(evidence) + 1))
        sources = {values[KEY_GROUNDING_FACTS][number - 1]["source"] for number in cited}
        assert "web_search" not in sources or any(path.startswith("/search") for path in site.paths)
        assert {int(n) for n in re.findall(r"\[(\d+)\]", values[KEY_SUMMARY])} >= cited
        invented = [address for address in _ADDRESS.findall(values[KEY_SUMMARY]) if not _was_read(address, evidence)]
        well_cited += [question] if sources & {"web_search", "fetch_url"} and not invented else []
        if len(well_cited) >= wanted and not THOROUGH:
            break
    assert len(well_cited) >= wanted


async def _research(question: str, model: LlamaCppModel, site: LocalSite) -> dict[str, Any]:
    web = WebSettings(search=f"searxng:{site.url}", allow=(site.address,), results=1, page_chars=400)
    tools = make_web_tools(web, fetcher=Fetcher(web, resolve=_resolve))
    flow = create_research_workflow(model=model, tools=tools, causal_inference=False, max_iterations=4, max_replans=0)
    result = await flow.run({KEY_PROMPT: question})
    assert str(result.stop_reason) == "GraphEnd"
    assert 0.0 <= result.values[KEY_GROUNDING_SCORE] <= 1.0
    assert result.values.get(KEY_REGENERATION_COUNT, 0) <= 1
    return dict(result.values)


async def _resolve(host: str, port: int) -> tuple[str, ...]:
    """No name is known here: a small model may ask for the address that a tool's example has."""
    if host != LOOPBACK:
        raise OSError(f"this test knows no {host}")
    return (host,)


def _was_read(address: str, evidence: list[str]) -> bool:
    return address.rstrip(".,;") in "\n".join(evidence)


@frozen
class Found:
    """What the deep agent submits."""

    year: int


_ASKED = "In which year was helium discovered?"


@tool(
    effect="pure",
    examples=[{"user": _ASKED, "arguments": {"element": "helium"}, "result": "Helium was discovered in 1895."}],
)
def look_up(element: str) -> str:
    """Look up a chemical element.

    Args:
        element: its name.
    """
    return f"{element.capitalize()} was discovered in 1875."


@tool(
    examples=[
        {"user": _ASKED, "arguments": {"year": 1895}, "result": "submitted", "answer": "Helium was discovered in 1895."}
    ]
)
def submit_research(year: int) -> str:
    """Submit the year.

    Args:
        year: four digits.
    """
    return "submitted"


class Seen:
    """The model, and what it was asked.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.requests: list[ModelRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.requests.append(request)
        return await self.model.complete(request, on_chunk)


async def test_a_deep_agent_with_all_layers_works_to_its_end(small_model: LlamaCppModel, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Look things up before you submit.\n")
    helper = SubAgentDef(name="helper", description="looks things up", system_prompt="You look things up.")
    seen = Seen(small_model)
    async with SqliteStore(tmp_path / "threads.db") as store:
        agent: Agent[Any, Found] = create_deepagent(
            model=seen,
            tools=[look_up, submit_research],
            system_prompt="You look a year up, then you submit it.",
            output_schema=Found,
            checkpointer=store,
            enable_filesystem=True,
            enable_todos=True,
            memory_files=[tmp_path / "AGENTS.md"],
            subagents=[helper],
            summarize_after_messages=20,
            max_iterations=3,
            max_tokens=8_000,
        )
        result = await agent.run("In which year was gallium discovered?", thread_id="t")
        kept = await store.peek("t")

    (system, *_), offered = seen.requests[0].messages, {each.name for each in seen.requests[0].tools}
    assert "Look things up before you submit." in system.text
    assert offered >= {"look_up", "submit_research", "task", "write_todos", *FILE_TOOLS}
    done = result.state.tool_executions
    assert done
    assert {each.tool_name for each in done} <= offered
    assert result.iterations <= 3
    assert kept is not None
    submitted = [
        each for each in result.state.tool_executions if each.tool_name == "submit_research" and each.succeeded
    ]
    assert (result.parsed is not None) is bool(submitted)
    assert result.parsed is None or result.parsed == Found(submitted[-1].arguments["year"])


async def test_a_real_judge_gives_verdicts_that_a_replay_repeats_without_it(
    small_model: LlamaCppModel, tmp_path: Path
) -> None:
    criterion, said = Judge("The answer says that gallium is a metal."), ["Gallium is a soft metal.", "I like pears."]
    suite = Suite(
        name="judged",
        cases=tuple(Case(id=f"c{i}", prompt=("What is gallium?",), checks=(criterion,)) for i in range(len(said))),
    )
    path = tmp_path / "tape.jsonl"

    before = await evaluate(
        Agent(ScriptedModel(*said)), suite, judge=small_model, tape=Tape(path, replays=False), label="agent"
    )
    silent = ScriptedModel(name=small_model.name)
    after = await evaluate(Agent(ScriptedModel()), suite, judge=silent, tape=Tape(path, replays=True), label="agent")

    for trial in before.trials:
        # The small model may judge wrongly; its verdict is one, or it is said that it was none.
        found = trial.checks[-1]
        assert found.status in ("passed", "failed") or found.detail.startswith("the judge gave no valid verdict")
        assert (found.status == "passed") is not bool(found.detail)
        assert trial.judge_tokens > 0
    assert any(trial.checks[-1].status != "error" for trial in before.trials)
    assert [trial.checks for trial in after.trials] == [trial.checks for trial in before.trials]
    assert not silent.requests
