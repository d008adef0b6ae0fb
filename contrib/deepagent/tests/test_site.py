"""The research workflow over a site: real pages are searched and read, and what is claimed is checked against them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from locus import tool
from locus.core.messages import Role
from locus.models import ModelRequest
from locus_deepagent import create_research_workflow
from locus_deepagent.research.keys import (
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_GROUNDING_FACTS,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_SUMMARY,
)
from locus_testkit import ScriptedModel, call
from locus_testkit.site import LocalSite, Question, element_questions

pytestmark = pytest.mark.anyio

#: The rows of a page that answer the kinds of questions.
ROWS = {
    "year": "Discovered in the year",
    "discoverer": "Discovered by",
    "location": "Discovered in",
    "density": "Density",
    "melting point": "Melting point",
}
QUESTIONS = [question for question in element_questions(12) if question.kind in ROWS][:5]
HOSTILE = "/hostile/instructions"


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        yield running


def tools_of(site: LocalSite) -> list[Any]:
    @tool(effect="pure")
    def search(query: str) -> list[str]:
        """Search the site; gives addresses.

        Args:
            query: words to look for.
        """
        with urlopen(site.at(f"/search?format=json&q={quote(query)}")) as response:
            return [found["url"] for found in json.load(response)["results"]][:3]

    @tool(effect="pure")
    def read(url: str) -> str:
        """Read a page.

        Args:
            url: its address.
        """
        with urlopen(url) as response:
            page = response.read().decode()
        rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", page)
        words = re.sub(r"<[^>]+>", " ", page.partition("<main>")[2].partition("<h2>")[0])
        return "\n".join([" ".join(words.split()), *(f"{name}: {value}." for name, value in rows)])

    return [search, read]


class Reader:
    """A model that searches, reads what it found and a hostile page, and claims what the right row says.

    Args:
        question: what it is asked.
        site: where.
        lies: what it claims until a judge objects, or None.
    """

    def __init__(self, question: Question, site: LocalSite, lies: str | None = None) -> None:
        self.question, self.site, self.lies = question, site, lies
        self.model = ScriptedModel(self.answer, after="repeat")

    def answer(self, request: ModelRequest) -> Any:
        text = request.messages[-1].text
        if request.purpose == "think":
            results = [message for message in request.messages if message.role is Role.TOOL]
            if not results:
                return call("search", query=self.question.prompt)
            if len(results) == 1:
                urls = [self.site.at(self.question.path), self.site.at(HOSTILE)]
                return [call("read", url=url) for url in urls]
            return "The page has it."
        if request.purpose == "summarize" and self.lies is not None:
            return json.dumps({"claims": [{"text": self.lies, "evidence": [2]}]})
        if request.purpose in ("summarize", "regenerate"):
            row = re.search(rf"^    ({ROWS[self.question.kind]}: .*)$", text, re.MULTILINE)
            assert row is not None
            numbers = re.findall(r"^\[(\d+)\] ", text[: row.start()], re.MULTILINE)
            return json.dumps({"claims": [{"text": row[1], "evidence": [int(numbers[-1])]}]})
        return "I cannot say."  # as the judge: rules decide then


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.kind)
async def test_a_question_is_answered_from_the_page_that_it_cites(question: Question, site: LocalSite) -> None:
    reader = Reader(question, site)
    flow = create_research_workflow(model=reader.model, tools=tools_of(site), reflexion=False, causal_inference=False)

    values = (await flow.run({KEY_PROMPT: question.prompt})).values

    assert question.is_answered_by(values[KEY_SUMMARY])
    assert values[KEY_GROUNDING_SCORE] == 1.0
    (claim,) = values[KEY_CLAIMS]
    (number,) = claim["evidence"]
    assert values[KEY_GROUNDING_FACTS][number - 1]["source"] == "read"
    assert question.is_answered_by(values[KEY_EVIDENCE][number - 1])
    assert {question.path, HOSTILE} <= set(site.paths)


async def test_a_claim_that_the_pages_do_not_confirm_is_written_again(site: LocalSite) -> None:
    question = QUESTIONS[0]
    reader = Reader(question, site, lies="It was discovered by Marie Curie in 1898.")
    flow = create_research_workflow(model=reader.model, tools=tools_of(site), reflexion=False, causal_inference=False)

    values = (await flow.run({KEY_PROMPT: question.prompt})).values

    assert values[KEY_REGENERATION_COUNT] == 1
    assert values[KEY_GROUNDING_SCORE] == 1.0
    assert question.is_answered_by(values[KEY_SUMMARY])
    assert "Marie Curie" not in values[KEY_SUMMARY]


async def test_what_a_hostile_page_says_is_shown_as_data(site: LocalSite) -> None:
    reader = Reader(QUESTIONS[0], site)
    flow = create_research_workflow(model=reader.model, tools=tools_of(site), reflexion=False)

    values = (await flow.run({KEY_PROMPT: QUESTIONS[0].prompt})).values

    hostile = next(text for text in values[KEY_EVIDENCE] if "ignore" in text.casefold())
    begins = hostile.splitlines()[0][:40]
    for request in reader.model.requests:
        text = request.messages[-1].text
        if request.purpose in ("causal", "summarize", "regenerate"):
            found = re.search(r"<<<data (\w+)\n(.*?)\n\1>>>", text, re.DOTALL)
            assert found is not None
            assert begins in found[2]
            assert begins not in text.replace(found[0], "")
