"""How many of the right tools are retrieved, and what of the request they save.

`python contrib/bench/retrieval.py` needs the plugin `toolsearch` and, for the rows with meaning, its extra `embed`:

- the plugin's own hundred tools (`plugins/toolsearch/tests/data/tools.tsv`), each with a plain query and a paraphrase,
  and forty colloquial requests for them;
- with `--bfcl FOLDER` BFCL, the Berkeley Function Calling Leaderboard (Apache-2.0), as its package holds it, unzipped:
  `pip download --no-deps bfcl-eval==2026.3.23`. All functions of its single-turn Python categories make one set; a
  query is a hit when every function of its answer is found. Many functions of it do the same under another name, and
  one of them alone counts.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from locus.tools import ToolSpec
from locus_plugin_toolsearch import Index, MiniLM
from locus_plugin_toolsearch.wordpiece import WordPiece, vocabulary

Query = tuple[str, frozenset[str]]

OWN = Path(__file__).parents[2] / "plugins" / "toolsearch" / "tests" / "data" / "tools.tsv"
COLLOQUIAL = OWN.with_name("colloquial.tsv")
#: Written by people who used a service; then: written for the benchmark.
LIVE = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
WRITTEN = ("simple_python", "multiple", "parallel", "parallel_multiple")
RANKS = (1, 5, 10, 20)


def own() -> tuple[list[ToolSpec], dict[str, list[Query]]]:
    """The plugin's own set."""
    rows = [line.split("\t") for line in OWN.read_text(encoding="utf-8").splitlines()[1:]]
    parameters = {"type": "object", "properties": {}}
    specs = [ToolSpec(name=name, description=said, parameters=parameters) for name, said, _, _ in rows]
    colloquial = COLLOQUIAL.read_text(encoding="utf-8").splitlines()[1:]
    spoken = [(said, frozenset([name])) for said, name in (line.split("\t") for line in colloquial)]
    return specs, {
        "100 tools, colloquial": spoken,
        "100 tools, plain": [(plain, frozenset([name])) for name, _, plain, _ in rows],
        "100 tools, paraphrased": [(other, frozenset([name])) for name, _, _, other in rows],
    }


def _name(given: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", given)[:64]


def bfcl(folder: Path) -> tuple[list[ToolSpec], dict[str, list[Query]]]:
    """The public set."""
    [data] = folder.glob("**/bfcl_eval/data")
    tools: dict[str, ToolSpec] = {}
    queries: dict[str, list[Query]] = {}
    for title, categories in (("BFCL, of users", LIVE), ("BFCL, written", WRITTEN)):
        for category in categories:
            file = f"BFCL_v4_{category}.json"
            asked = [json.loads(line) for line in (data / file).read_text(encoding="utf-8").splitlines()]
            answers = (data / "possible_answer" / file).read_text(encoding="utf-8").splitlines()
            right = {row["id"]: row["ground_truth"] for row in map(json.loads, answers)}
            for row in asked:
                for one in row["function"]:
                    name = _name(one["name"])
                    tools.setdefault(
                        name, ToolSpec(name=name, description=one["description"], parameters=one["parameters"])
                    )
                words = [turn["content"] for turn in row["question"][0] if turn["role"] == "user"][-1]
                wanted = frozenset(_name(called) for answer in right[row["id"]] for called in answer)
                queries.setdefault(title, []).append((words, wanted))
    return list(tools.values()), queries


def _form(specs: Sequence[ToolSpec]) -> str:
    """The tools as a request has them."""
    forms: list[Any] = [
        {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": s.parameters}}
        for s in specs
    ]
    return json.dumps(forms, default=dict)


def measure(specs: list[ToolSpec], queries: dict[str, list[Query]], retrievers: dict[str, Any]) -> None:
    """Print a row for each retriever and kind of query."""
    by_name = {spec.name: spec for spec in specs}
    count = WordPiece(vocabulary(), 10**9)
    whole = len(count(_form(specs)))
    for title, embedder in retrievers.items():
        began = time.perf_counter()
        index = Index(specs, embedder)
        built = time.perf_counter() - began
        for kind, asked in queries.items():
            hits, took, tokens = dict.fromkeys(RANKS, 0), list[float](), list[int]()
            for query, wanted in asked:
                began = time.perf_counter()
                found = [each.name for each in index.best(query, max(RANKS))]
                took.append(time.perf_counter() - began)
                for rank in RANKS:
                    hits[rank] += wanted <= set(found[:rank])
                if len(tokens) < 200:
                    tokens.append(len(count(_form([by_name[name] for name in found[:10]]))))
            recall = " / ".join(f"{100 * hits[rank] / len(asked):.0f}" for rank in RANKS)
            print(
                f"{kind} ({len(asked)} queries, {len(specs)} tools) | {title} | {recall} "
                f"| {statistics.median(took) * 1e3:.2f} ms | index {built:.2f} s "
                f"| {whole} -> {statistics.mean(tokens):.0f} tokens"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Recall of tool retrieval, and the tokens it saves.")
    parser.add_argument("--bfcl", type=Path, help="the unzipped package bfcl-eval")
    parser.add_argument("--words-only", action="store_true", help="without the embedding model")
    given = parser.parse_args()
    retrievers = {"bm25": None} | ({} if given.words_only else {"embed": MiniLM()})
    print("queries | retriever | all right tools among the first", " / ".join(map(str, RANKS)), "(%) | a query | ...")
    for specs, queries in [own(), *([bfcl(given.bfcl)] if given.bfcl else [])]:
        measure(specs, queries, retrievers)


if __name__ == "__main__":
    main()
