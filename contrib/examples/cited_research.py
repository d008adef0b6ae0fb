"""Research whose sources were really read: an answer that cites a page which was not fetched goes back to the model.

    python contrib/examples/cited_research.py "Who discovered gallium?" --search searxng:https://search.example

It needs the plugins web, provenance and that of the model. Pages are written by strangers: the tools only read, and the
plugin web reaches public addresses alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from cattrs import structure

from locus import Agent, Hook, Message, Revise, TimeLimit, TokenLimit
from locus.core.state import AgentState
from locus.plugin import hookimpl


@frozen
class Claim:
    """One sentence, and the pages that say so."""

    text: str
    sources: list[str]


@frozen
class Report:
    """What was found out."""

    claims: list[Claim]


def find_faults(report: Report, state: AgentState) -> str:
    """What is wrong with the citations of a report, by what the run has fetched; ``""`` if nothing is."""
    done = state.tool_executions
    fetched = {str(each.arguments["url"]) for each in done if each.tool_name == "fetch_url" and not each.error}
    wrong = [f"{claim.text!r} has no source" for claim in report.claims if not claim.sources]
    wrong += [f"{url} was not fetched" for claim in report.claims for url in claim.sources if url not in fetched]
    return "; ".join(wrong)


class CitesWhatItRead(Hook):
    """A guard: every claim has a source, and every source was fetched in this run."""

    guard = True

    @hookimpl
    def locus_review_answer(self, answer: Message, state: AgentState) -> Revise | None:
        """Send the answer back, at most ``max_revisions`` times."""
        try:
            report = structure(json.loads(answer.text), Report)
        except Exception:  # noqa: BLE001  # not a Report: the output schema says what is wrong with it
            return None
        wrong = find_faults(report, state)
        return Revise(f"{wrong}. Cite only pages that you have fetched.") if wrong else None


def build(model: Any, search: str, allow: Sequence[str] = ()) -> Agent[Any, Report]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model.
        search: the search engine, ``"searxng:URL"``.
        allow: hosts with a port that may be read although they are not public.
    """
    return Agent(
        model,
        name="research",
        system_prompt="Answer from web pages: search, fetch the pages that look right, and cite the URL of each page.",
        output_schema=Report,
        web={"search": search, "allow": tuple(allow), "results": 5, "page_chars": 8_000},
        # Following links is the task, and this agent knows no secret that a URL could carry out.
        provenance={"mode": "reject", "tools": {"fetch_url": {"mode": "allow"}, "web_search": {"mode": "allow"}}},
        hooks=[CitesWhatItRead()],
        termination=TokenLimit(60_000) | TimeLimit(300),
        max_iterations=12,
        max_revisions=3,
    )


async def main(question: str, model: str, search: str) -> None:
    """Research one question, and print the claims with numbered sources."""
    result = (await build(model, search).run(question)).raise_for_failure()
    wrong = find_faults(result.parsed, result.state) if result.parsed else f"{result.stop_reason} {result.detail}"
    if result.parsed is None or wrong:
        raise SystemExit(f"no report: {wrong}")
    numbers: dict[str, int] = {}
    for claim in result.parsed.claims:
        marks = "".join(f"[{numbers.setdefault(url, len(numbers) + 1)}]" for url in claim.sources)
        print(f"{claim.text} {marks}")
    for url, number in numbers.items():
        print(f"[{number}] {url}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Research a question on the web, with citations that were read.")
    parser.add_argument("question")
    parser.add_argument("--search", required=True, help="searxng:URL of an instance that offers the format json")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    asyncio.run(main(args.question, args.model, args.search))
