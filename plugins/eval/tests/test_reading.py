"""Files of cases: what is read, and what is said of those that are wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from locus.core.errors import InputError
from locus_plugin_eval import InvalidCases, Suite, read_cases
from locus_plugin_eval.checks import Called, Contains, Ends, Exact, Grounded, Judge, Matches, NotCalled, ValidJson


def read(tmp_path: Path, text: str) -> Suite:
    path = tmp_path / "desk.eval.yaml"
    path.write_text(text, encoding="utf-8")
    return read_cases(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InvalidCases) as caught:
        read(tmp_path, text)
    assert all(line.startswith(f"{tmp_path / 'desk.eval.yaml'}: ") for line in str(caught.value).splitlines())
    return list(caught.value.problems)


EVERYTHING = r"""
name: the desk
agent: shop.py:agent
repeats: 3
concurrency: 2
judge: toy:judge
thresholds: {pass: 0.9, judge: 0.5}
cases:
  - id: all-of-it
    prompt: ["Hello.", "And the price?"]
    answers: ["yes"]
    tags: [slow, money]
    checks:
      - exact: "4"
      - contains: lamp
      - contains: {texts: [lamp, EUR], ignore_case: true}
      - regex: (?i)\d+ eur
      - schema: {type: object, properties: {a: {type: integer}}}
      - called: price
      - called: {tool: price, arguments: {item: lamp}, times: 2}
      - not_called: refund
      - not_called: {tool: price, arguments: {item: chair}}
      - grounded: true
      - grounded: 0.5
      - judge: It is polite.
      - ends: [NoToolCalls, MaxIterations]
"""


def test_everything_that_a_file_may_say(tmp_path: Path) -> None:
    suite = read(tmp_path, EVERYTHING)
    (case,) = suite.cases

    assert (suite.name, suite.agent, suite.repeats, suite.concurrency, suite.judge) == (
        "the desk",
        "shop.py:agent",
        3,
        2,
        "toy:judge",
    )
    assert suite.thresholds == {"pass": 0.9, "judge": 0.5}
    assert (case.prompt, case.answers, case.tags) == (("Hello.", "And the price?"), ("yes",), ("slow", "money"))
    assert [type(each) for each in case.checks] == [
        *(Exact, Contains, Contains, Matches, ValidJson, Called, Called, NotCalled, NotCalled),
        *(Grounded, Grounded, Judge, Ends),
    ]
    assert case.checks[2] == Contains(("lamp", "EUR"), ignore_case=True)
    assert case.checks[6] == Called("price", {"item": "lamp"}, 2)
    assert case.checks[9] == Grounded(1.0)
    assert case.all_checks == case.checks


def test_a_list_is_a_file_of_cases_and_is_named_after_the_file(tmp_path: Path) -> None:
    suite = read(tmp_path, "- {id: a, prompt: Hi.}\n")
    assert (suite.name, suite.cases[0].id) == ("desk", "a")
    assert suite.cases[0].all_checks == (Ends(),)


def test_all_that_is_wrong_is_said_at_once_with_case_key_value_and_the_nearest_key(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
repeets: 3
repeats: 0
thresholds: {pass: 2, juge: 1}
cases:
  - id: a
    promt: Hi.
    checks:
      - exact: 4
      - containz: lamp
      - regex: "(a"
      - called: {tool: x, tims: 2}
      - schema: {type: string, format: date}
      - grounded: 7
  - id: a b
    prompt: Hi.
    checks: exact
  - just text
  - id: a
    prompt: []
""",
    )
    assert [line for line in found if not line.startswith("case")] == [
        "repeats: expected a whole number from 1 to 10000, got 0",
        "thresholds.pass: expected a number from 0 to 1, got 2",
        "thresholds.juge: 'juge' is not known; did you mean 'judge'?",
        "'repeets' is not known; did you mean 'repeats'?",
    ]
    cases = [line for line in found if line.startswith("case")]
    assert cases[0] == "case 'a': the key 'prompt' is missing"
    assert cases[1] == (
        "case 'a': checks[0].exact: expected text (in quotes, if it looks like a number, a date or yes and no), got 4"
    )
    assert cases[2] == "case 'a': checks[1].containz: 'containz' is not known; did you mean 'contains'?"
    assert cases[3].startswith("case 'a': checks[2].regex: the pattern '(a' is refused: missing ): (a")
    assert cases[4] == "case 'a': checks[3].called: 'tims' is not known; did you mean 'times'?"
    assert cases[5].startswith("case 'a': checks[4].schema: the keyword 'format' is not checked here")
    assert cases[6] == "case 'a': checks[5].grounded: expected a number from 0 to 1, got 7"
    assert cases[7] == "case 'a': 'promt' is not known; did you mean 'prompt'?"
    assert cases[8].startswith("case 'a b': id: expected an id of letters")
    assert cases[9] == "case 'a b': checks: expected a list of checks, such as [{contains: lamp}], got 'exact'"
    assert cases[10] == "case number 3: expected a case with the keys id, prompt and checks, got 'just text'"
    assert cases[11] == "case 'a': prompt: expected text, or a list of texts, got []"
    assert cases[12] == "case 'a': id: 2 cases have this id; expected each to have its own"
    assert len(cases) == 13


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty; expected `cases:` and a list of them"),
        ("# nothing\n", "the file is empty; expected `cases:` and a list of them"),
        ("cases: []", "cases: the list is empty; expected at least one case"),
        ("just text", "expected keys such as `cases:`, got 'just text'"),
        ("cases: {a: 1}", "cases: expected a list of cases, got {'a': 1}"),
        ("name: x", "the key 'cases' is missing"),
        (
            "cases:\n- {id: a, prompt: x, answers: yes}",
            "case 'a': answers: expected text, or a list of texts, got True",
        ),
        (
            "cases:\n- {id: a, prompt: x, checks: [{called: {arguments: {}}}]}",
            "case 'a': checks[0].called: the key 'tool' is missing",
        ),
        (
            "cases:\n- {id: a, prompt: x, checks: [{exact: a, contains: b}]}",
            "case 'a': checks[0]: expected one check, such as {contains: lamp}, got {'exact': 'a', 'contains': 'b'}",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert problems(tmp_path, text) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases: [", "expected YAML"),
        ("cases:\n- {id: a, prompt: x, prompt: y}", "the key 'prompt' is given twice"),
        ("cases: !!python/object/apply:os.system [echo]", "could not determine a constructor"),
        ("a: &a [x]\nb: *c", "found undefined alias"),
        ("cases:\n- id: a\n  ? [x, y]\n  : 1", "expected a key that is text, got a list or a mapping"),
        ("? {a: b}\n: 1\ncases: []", "expected a key that is text, got a list or a mapping"),
        ("cases: &a [*a]", "an alias must not be within the value that it repeats"),
        ("cases: !!bool x", "expected YAML"),
        ("cases: !!timestamp x", "expected YAML"),
        ("cases: !!int ''", "expected YAML"),
        ("[" * 5_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_not_plain_yaml_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (found,) = problems(tmp_path, text)
    assert said in found


def bomb(width: int, depth: int, merged: bool = False) -> str:
    """Lines of which each has the one before it so many times."""
    lines = ["a0: &a0 {id: a}" if merged else "a0: &a0 [x]"]
    for n in range(1, depth + 1):
        aliases = ", ".join([f"*a{n - 1}"] * width)
        lines.append(f"a{n}: &a{n} {{<<: [{aliases}]}}" if merged else f"a{n}: &a{n} [{aliases}]")
    return "\n".join([*lines, f"cases: *a{depth}"])


@pytest.mark.parametrize("text", [bomb(9, 9), bomb(2, 400), bomb(2, 5_000), bomb(9, 9, merged=True)])
def test_aliases_that_repeat_millions_of_values_are_refused_at_once(tmp_path: Path, text: str) -> None:
    begun = time.monotonic()
    (found,) = problems(tmp_path, text)
    assert time.monotonic() - begun < 20
    assert found.startswith("expected YAML: ")
    assert "its aliases repeat more than 1,000,000 values" in found or "nested too deeply" in found


def test_aliases_are_for_what_is_said_several_times(tmp_path: Path) -> None:
    text = """
common: &common [{contains: lamp}]
cases:
  - {id: a, prompt: x, checks: *common}
  - {id: b, prompt: x, checks: *common}
"""
    assert problems(tmp_path, text) == [
        "'common' is not known; the keys are name, cases, agent, repeats, concurrency, judge, thresholds"
    ]
    suite = read(
        tmp_path, "cases:\n- {id: a, prompt: x, checks: &c [{contains: lamp}]}\n- {id: b, prompt: x, checks: *c}"
    )
    assert suite.cases[0].checks == suite.cases[1].checks == (Contains(("lamp",)),)


@pytest.mark.parametrize("check", ["called", "not_called"])
@pytest.mark.parametrize(
    ("arguments", "path", "said"),
    [
        ("{arrival: 2030-05-01}", ".arrival", "in quotes, if it looks like a date), got datetime.date(2030, 5, 1)"),
        ("{arrival: 2030-05-01 10:00:00}", ".arrival", "in quotes, if it looks like a date), got datetime.datetime("),
        ("{stay: {from: [x, 2030-05-01]}}", ".stay.from[1]", "in quotes, if it looks like a date)"),
        ("{a: [{1: x}]}", ".a[0]", "expected a name that is text (in quotes, if it looks like a number"),
        ("{a: !!binary aGk=}", ".a", "expected a value of JSON, got b'hi'"),
        ("{a: !!set {x}}", ".a", "expected a value of JSON, got {'x'}"),
        ("{a: .nan}", ".a", "expected a value of JSON, got nan"),
        ("{a: [-.inf]}", ".a[0]", "expected a value of JSON, got -inf"),
        (f"{{a: 0x{'f' * 4_000}}}", ".a", "got a number of too many digits"),
    ],
)
def test_an_argument_that_no_call_can_have_is_refused(
    tmp_path: Path, check: str, arguments: str, path: str, said: str
) -> None:
    (found,) = problems(
        tmp_path, f"cases: [{{id: a, prompt: x, checks: [{{{check}: {{tool: book, arguments: {arguments}}}}}]}}]"
    )
    assert found.startswith(f"case 'a': checks[0].{check}.arguments{path}: ")
    assert said in found


def test_all_arguments_that_are_not_json_are_reported_and_a_date_in_quotes_is_text(tmp_path: Path) -> None:
    text = "cases: [{id: a, prompt: x, checks: [{called: {tool: book, arguments: {a: 2030-05-01, b: [.nan]}}}]}]"
    assert len(problems(tmp_path, text)) == 2
    (check,) = read(tmp_path, text.replace("2030-05-01", "'2030-05-01'").replace(".nan", "0.5")).cases[0].checks
    assert check == Called("book", {"a": "2030-05-01", "b": [0.5]})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidCases, match="cannot be read: No such file"):
        read_cases(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidCases, match="expected YAML"):
        read_cases(tmp_path / "latin.yaml")


def test_a_pattern_of_a_schema_that_could_not_be_matched_is_refused(tmp_path: Path) -> None:
    (found,) = problems(
        tmp_path, "cases: [{id: a, prompt: x, checks: [{schema: {properties: {b: {pattern: '(?=x)'}}}}]}]"
    )
    assert "the pattern '(?=x)' is refused" in found


def test_cases_are_selected_by_parts_of_ids_and_by_tags(tmp_path: Path) -> None:
    suite = read(
        tmp_path, "cases:\n- {id: Refund-1, prompt: x}\n- {id: price, prompt: x, tags: [money]}\n- {id: b, prompt: x}\n"
    )
    assert [case.id for case in suite.select(["refund", "MONEY"]).cases] == ["Refund-1", "price"]
    assert suite.select([]) is suite
    with pytest.raises(InputError, match=r"no case of 'desk' matches 'prize'; did you mean 'price'?"):
        suite.select(["prize"])


def test_the_digest_is_of_what_is_asked_and_checked(tmp_path: Path) -> None:
    one = read(tmp_path, "cases: [{id: a, prompt: x, checks: [{regex: 'b'}]}]")
    same = read(tmp_path, "name: other\nrepeats: 3\ncases: [{id: a, prompt: x, checks: [{regex: 'b'}]}]")
    other = read(tmp_path, "cases: [{id: a, prompt: x, checks: [{regex: 'c'}]}]")
    assert one.digest == same.digest != other.digest
