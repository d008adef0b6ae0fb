"""Reports: what is counted, what is compared, and that no answer can break a page or a file."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.core.errors import InputError
from locus_plugin_eval import CheckResult, Report, Trial, compare, draw_page, write_junit
from locus_plugin_eval.text import describe_comparison, describe_report, table_rows
from locus_plugin_eval.trials import Call

laws = settings(deadline=None, derandomize=True)

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;\x00\x1b[2J\u202e\ud800 <!--"


def trial(case: str, *, passed: bool = True, repeat: int = 1, **more: Any) -> Trial:
    found = CheckResult(
        kind="exact", check="4", status="passed" if passed else "failed", detail="" if passed else "it is 5"
    )
    return Trial(case=case, repeat=repeat, checks=(found,), **more)


def report(*trials: Trial, **more: Any) -> Report:
    return Report(
        **({"suite": "desk", "agent": "shop.py:agent", "thread": "eval/1", "digest": "d"} | more), trials=trials
    )


def test_a_report_comes_back_from_json() -> None:
    one = report(
        trial("a", tokens=10, cost=0.5, seconds=1.0, calls=(Call(name="x", arguments={"a": [1]}),)),
        trial("b", passed=False, missing="no answer"),
        thresholds={"pass": 0.5},
        replayed=True,
    )
    form = json.loads(json.dumps(one.to_json()))
    assert Report.from_json(form) == one
    assert (form["passed"], form["size"], form["trials"][1]["status"]) == (1, 1, "missing")


@pytest.mark.parametrize("form", [{}, [], 3, {"format": 2}, {"format": 1, "trials": [{}]}])
def test_what_is_not_a_report_is_refused(form: Any) -> None:
    with pytest.raises(InputError, match="expected a report"):
        Report.from_json(form)


def test_thresholds_are_of_trials_and_of_kinds_of_checks() -> None:
    found = report(trial("a"), trial("b", passed=False), thresholds={"pass": 0.5, "exact": 0.9, "judge": 0.1})
    assert found.find_unmet() == (
        "1 of 2 exact checks passed (50.0%), expected 90.0%",
        "there are no judge checks, and 10.0% of them must pass",
    )
    assert found.find_unmet(min_pass=0.6)[0] == "1 of 2 trials passed (50.0%), expected 60.0%"
    assert report(trial("a"), trial("b", passed=False)).find_unmet() == (
        "1 of 2 trials passed (50.0%), expected 100.0%",
    )


def test_repeats_of_a_case_do_not_make_the_interval_of_all_narrower() -> None:
    once = report(*(trial(f"c{n}", passed=n < 6) for n in range(10)))
    often = report(*(trial(f"c{n}", passed=n < 6, repeat=k) for n in range(10) for k in range(1, 11)))
    assert (often.tally.low, often.tally.high) == pytest.approx((once.tally.low, once.tally.high))
    assert often.tally.size == 100


def test_the_table_has_a_row_for_each_case_and_one_for_all() -> None:
    found = report(
        trial("a", tokens=10, cost=0.01, seconds=1.0),
        trial("a", passed=False, repeat=2, tokens=30, cost=0.03, seconds=2.0),
        trial("b", tokens=20),
    )
    assert table_rows(found) == [
        ("a", "1/2", "9% to 91%", "20", "$0.0200", "1.5", "exact: it is 5"),
        ("b", "1/1", "21% to 100%", "20", "-", "-", ""),
        ("all", "2/3", "21% to 94%", "20", "$0.0133", "1.5", ""),
    ]
    assert list(describe_report(found)) == ["exact: 2/3 passed, 21% to 94%", "3 trials: 60 tokens, $0.0400"]


# -- comparison -----------------------------------------------------------------------------------


def test_a_comparison_is_of_cases() -> None:
    before = report(*(trial(f"c{n}", passed=n >= 6) for n in range(10)), agent="old")
    after = report(*(trial(f"c{n}", passed=n != 9) for n in range(10)), agent="new")
    found = compare(before, after)
    assert (len(found.better), found.worse, found.ties, found.p) == (6, ("c9",), 3, 0.125)
    assert found.difference == pytest.approx(0.5)
    assert list(describe_comparison(found))[2:] == [
        "difference: +50.0%; p = 0.125 (McNemar's exact test over cases, two-sided)",
        "better: 6 (c0, c1, c2, c3, c4, c5); worse: 1 (c9); the same: 3",
    ]


def test_repeats_are_not_counted_as_pairs() -> None:
    before = report(*(trial("a", passed=False, repeat=k) for k in range(1, 21)))
    after = report(*(trial("a", repeat=k) for k in range(1, 21)))
    assert compare(before, after).p == 1.0


def test_what_is_missing_on_a_side_is_left_out() -> None:
    found = compare(report(trial("a"), trial("b")), report(trial("a", missing="x"), trial("b", passed=False)))
    assert (found.left_out, found.worse, found.difference) == (("a",), ("b",), -1.0)
    assert list(describe_comparison(found))[-1] == "not compared, as answers are not on the tape: 1 (a)"


def test_other_cases_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="different cases"):
        compare(report(trial("a")), report(trial("a"), digest="e"))


@laws
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_the_other_way_round_better_is_worse(pairs: list[tuple[bool, bool]]) -> None:
    one = report(*(trial(f"c{n}", passed=a) for n, (a, _) in enumerate(pairs)))
    two = report(*(trial(f"c{n}", passed=b) for n, (_, b) in enumerate(pairs)))
    found, back = compare(one, two), compare(two, one)
    assert (found.better, found.worse, found.ties, found.p) == (back.worse, back.better, back.ties, back.p)
    assert len(found.better) + len(found.worse) + found.ties == len(pairs)


# -- files ----------------------------------------------------------------------------------------


def hostile() -> Report:
    call = Call(name=HOSTILE, arguments={HOSTILE: HOSTILE}, error=HOSTILE)
    fault = CheckResult(kind=HOSTILE, check=HOSTILE, status="failed", detail=HOSTILE)
    bad = Trial(case="a", repeat=1, checks=(fault,), text=HOSTILE, calls=(call,), stop_reason=HOSTILE, thread=HOSTILE)
    lost = Trial(case="b", repeat=1, missing=HOSTILE)
    return report(bad, lost, trial("c"), suite=HOSTILE, agent=HOSTILE, thread=HOSTILE)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")


def test_no_answer_can_break_out_of_the_page() -> None:
    one = hostile()
    page = draw_page(one, compare(one, one))
    page.encode()
    read = Tags()
    read.feed(page)
    assert not {"script", "img", "comment", "link", "iframe", "a"} & set(read.tags)
    assert not [name for name in read.attributes if name.startswith("on") or name in ("src", "href")]
    assert "<script>alert(1)</script>" in read.text
    assert "\\x1b[2J\\u202e" in read.text
    assert not set("\x00\x1b\u202e") & set(page)
    assert "default-src &#x27;none&#x27;" in page


@laws
@given(st.text(st.characters()), st.text(st.characters()))
def test_a_page_is_what_was_said_and_nothing_else(text: str, name: str) -> None:
    one = report(trial("a", text=text, thread=name), agent=name)
    read = Tags()
    read.feed(draw_page(one))
    plain = Tags()
    plain.feed(draw_page(report(trial("a", text="x", thread="x"), agent="x")))
    assert read.tags == plain.tags


def test_junit_says_what_passed_failed_and_could_not_be_told() -> None:
    root = ET.fromstring(write_junit(hostile()))
    suite = root[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert [[each.tag for each in case] for case in suite] == [["failure"], ["error"], []]
    assert "<script>alert(1)</script>" in str(suite[0][0].text)
    assert "\ufffd" in str(suite[0][0].get("message"))
    several = ET.fromstring(write_junit(report(trial("a"), trial("a", repeat=2))))
    assert [case.get("name") for case in several[0]] == ["a[1]", "a[2]"]


@laws
@given(st.text(st.characters()))
def test_junit_is_xml_whatever_an_agent_says(text: str) -> None:
    ET.fromstring(write_junit(report(trial("a", passed=False, text=text), suite=text, agent=text)).encode())
