"""The mark, the fixture and the option, used as a test of an agent uses them."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import locus

pytest_plugins = ["pytester"]

# What a run imports has to stay imported, and pytester forgets what came while it was there.
for module in pkgutil.walk_packages(locus.__path__, "locus."):
    importlib.import_module(module.name)

TESTS = """
import os
from pathlib import Path
import pytest
from locus import Agent
from locus.models import ModelRequest
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio

def live():
    # A live model: it says something else each time, and is not there at all unless something is recorded.
    with open("asked", "a") as log:
        log.write("x")
    return ScriptedModel(lambda request: f"answer {len(Path('asked').read_text())}", name="acme:big", after="repeat")

@pytest.mark.cassette("greeting")
async def test_named(cassette):
    result = await Agent(cassette.model("acme:big", live)).run(os.environ.get("SAY", "Hello."))
    assert result.text.startswith("answer")

async def test_unnamed(cassette):
    await Agent(cassette.model("acme:big", live)).run("Hello.")

@pytest.mark.parametrize("city", ["Rome", "Oslo"])
async def test_each(cassette, city):
    await Agent(cassette.model("acme:big", live)).run(city)
    assert os.environ.get("FAIL") != city
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_it=TESTS)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("-p", "anyio", "-p", "locus_testkit", "-p", "no:cacheprovider")
    options = ("--disable-plugin-autoload", "--strict-markers", "-k", "not trio", "-vv")
    return project.runpytest_inprocess(*options, *plugins, *arguments)


def count_calls(project: pytest.Pytester) -> int:
    log = project.path / "asked"
    return len(log.read_text()) if log.exists() else 0


def cassettes(project: pytest.Pytester) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((project.path / "cassettes").glob("*"))}


def test_cassettes_are_recorded_when_asked_for_and_replayed_ever_after(project: pytest.Pytester) -> None:
    missing = run(project)
    missing.assert_outcomes(errors=4, deselected=4)
    missing.stdout.fnmatch_lines(["*CassetteMissing: *greeting.jsonl: *--locus-record=once*"])
    assert count_calls(project) == 0

    run(project, "--locus-record=once").assert_outcomes(passed=4, deselected=4)
    made = cassettes(project)
    assert list(made) == ["greeting.jsonl", "test_each-Oslo.jsonl", "test_each-Rome.jsonl", "test_unnamed.jsonl"]
    assert count_calls(project) == 4

    run(project).assert_outcomes(passed=4, deselected=4)
    run(project, "--locus-record=once").assert_outcomes(passed=4, deselected=4)
    assert (count_calls(project), cassettes(project)) == (4, made)

    run(project, "--locus-record=all").assert_outcomes(passed=4, deselected=4)
    assert count_calls(project) == 8
    assert cassettes(project)["greeting.jsonl"] != made["greeting.jsonl"]


def test_a_request_that_differs_fails_its_test_though_the_run_only_reports_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(project, "--locus-record=once").assert_outcomes(passed=4, deselected=4)
    monkeypatch.setenv("SAY", "Goodbye.")
    result = run(project)
    result.assert_outcomes(passed=3, failed=1, deselected=4)
    result.stdout.fnmatch_lines(["*CassetteMismatch: *", "*-messages*'Hello.'", "*+messages*'Goodbye.'"])


def test_a_test_that_fails_records_nothing(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "Oslo")
    run(project, "--locus-record=all").assert_outcomes(passed=3, failed=1, deselected=4)
    assert "test_each-Oslo.jsonl" not in cassettes(project)


def test_the_ini_file_chooses_the_mode_outside_of_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makeini("[pytest]\nlocus_record = once\n")
    monkeypatch.setenv("CI", "true")
    run(project).assert_outcomes(errors=4, deselected=4)
    assert count_calls(project) == 0
    monkeypatch.delenv("CI")
    run(project).assert_outcomes(passed=4, deselected=4)


@pytest.mark.parametrize(
    ("ini", "mark", "said"),
    [
        ("locus_record = some", "", "locus_record must be one of 'none', 'once', 'all', got 'some'"),
        ("", '"../up"', "'../up' of"),
        ("", "nothing=1", "unexpected keyword argument 'nothing'"),
    ],
)
def test_what_cannot_be_is_refused(project: pytest.Pytester, ini: str, mark: str, said: str) -> None:
    project.makeini(f"[pytest]\n{ini}\n")
    project.makepyfile(test_it=f"import pytest\n@pytest.mark.cassette({mark})\ndef test_it(cassette): pass\n")
    result = run(project, "--locus-record=all")
    assert result.ret != 0
    assert said in result.stdout.str() + result.stderr.str()
    assert not Path(project.path / "up.jsonl").exists()


def test_more_secrets_can_be_hidden(project: pytest.Pytester) -> None:
    project.makeconftest(
        "import pytest\nfrom locus_testkit import Scrubber\n\n@pytest.fixture\ndef cassette_scrubber():\n"
        "    return Scrubber(['Hello'])\n"
    )
    run(project, "--locus-record=once").assert_outcomes(passed=4, deselected=4)
    assert b"***." in cassettes(project)["greeting.jsonl"]
    assert b"Hello" not in cassettes(project)["greeting.jsonl"]
    run(project).assert_outcomes(passed=4, deselected=4)
