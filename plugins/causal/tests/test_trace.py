"""What the rules read out of a tool trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.events import ToolCompleteEvent
from locus.core.executions import ToolExecution
from locus_plugin_causal import CausalChain, Conflict, build_causal_chain
from locus_plugin_causal.trace import TraceBuilder
from locus_plugin_causal.values import argument_values, result_values


def ran(name: str, turn: int, result: str | None = "ok", error: str | None = None, **arguments: Any) -> ToolExecution:
    return ToolExecution(
        tool_name=name, arguments=arguments, result=None if error else result, error=error, iteration=turn
    )


def edges(chain: CausalChain) -> list[str]:
    return [f"{e.cause} {e.relation.value} {e.effect}" for e in chain.edges]


def types(chain: CausalChain) -> dict[str, str]:
    return {node.id: node.node_type.value for node in chain.nodes.values()}


def test_a_value_that_is_handed_on_is_a_cause() -> None:
    chain = build_causal_chain(
        [
            ran("search", 0, json.dumps({"flights": [{"id": "AA-181", "price": 1200}]}), origin="JFK"),
            ran("price", 1, "1,100 in economy", flight="AA-181"),
            ran("book", 2, "BK-58291", flight="AA-181", paid=1200),
            ran("mail", 3, text="Your booking is BK-58291, thank you."),
        ]
    )
    assert edges(chain) == ["c1 causes c2", "c1 causes c3", "c3 causes c4"]
    assert [e.why for e in chain.edges] == ["brought 'AA-181'", "brought 'AA-181'", "brought 'BK-58291'"]
    assert set(types(chain).values()) == {"unknown"}
    assert [root.id for root in chain.roots] == ["c1"]


@pytest.mark.parametrize(
    "calls",
    [
        [ran("echo", 0, "you said C-42", who="C-42"), ran("book", 1, who="C-42")],
        [ran("note", 0, what="C-42"), ran("find", 1, "it is C-42"), ran("book", 2, who="C-42")],
        [ran("count", 0, "there are 12"), ran("book", 1, seats=12)],
        [ran("ask", 0, "the flight is late"), ran("find", 1, what="flight")],
        [ran("ask", 0, '{"ok": true}'), ran("find", 1, strict=True, also="true")],
        [ran("ask", 0, "true"), ran("find", 1, strict="true")],
        [ran("find", 0, "it is C-42"), ran("book", 0, who="C-42")],
    ],
    ids=["an echo", "known before", "a short number", "a word", "a truth value", "its word", "the same turn"],
)
def test_a_value_that_may_have_come_from_elsewhere_is_not_a_cause(calls: list[ToolExecution]) -> None:
    assert edges(build_causal_chain(calls)) == []


def test_what_the_user_said_was_brought_by_nobody() -> None:
    calls = [ran("find", 0, "C-42 lives in Rome"), ran("book", 1, who="C-42")]
    assert edges(build_causal_chain(calls)) == ["c1 causes c2"]
    assert edges(build_causal_chain(calls, known=["Book for customer C-42."])) == []


def test_a_failure_is_a_symptom_and_what_leads_to_it_has_a_part() -> None:
    chain = build_causal_chain(
        [
            ran("search", 0, "AA-181"),
            ran("weather", 0, "fine"),
            ran("hold", 1, "held as H-7", flight="AA-181"),
            ran("book", 2, error="SeatTaken: 12A, try 14C", hold="H-7"),
            ran("book", 3, "BK-1", hold="H-7", seat="14C"),
        ]
    )
    assert types(chain) == {
        "c1": "root_cause",
        "c2": "unknown",
        "c3": "intermediate",
        "c4": "intermediate",
        "e1": "symptom",
        "c5": "unknown",
    }
    assert edges(chain) == [
        "c1 causes c3",
        "c3 causes c4",
        "c4 causes e1",
        "c3 causes c5",
        "e1 causes c5",
        "c5 prevents e1",
    ]
    assert chain.nodes["e1"].label == "book failed: SeatTaken: 12A, try 14C"
    assert chain.path("c1", "e1") == ("c1", "c3", "c4", "e1")
    assert chain.conflicts == ()


def test_only_the_first_other_try_answers_a_failure() -> None:
    calls = [ran("book", 0, error="no", at=1), ran("book", 1, at=2), ran("book", 2, at=3)]
    assert edges(build_causal_chain(calls)) == ["c1 causes e1", "e1 causes c2", "c2 prevents e1"]


def test_an_error_that_names_something_causes_the_call_that_takes_it_up() -> None:
    chain = build_causal_chain([ran("read", 0, error="Denied: ask for GRANT-9"), ran("grant", 1, right="GRANT-9")])
    assert edges(chain) == ["c1 causes e1", "e1 causes c2"]


def test_the_same_call_that_failed_and_succeeds_contradicts_itself() -> None:
    chain = build_causal_chain([ran("get", 0, error="Timeout: no", id=1), ran("get", 1, id=1)])
    assert edges(chain) == ["c1 causes e1", "c1 prevents e1"]
    assert [conflict.nodes for conflict in chain.contradictions] == [("c1", "e1")]


def test_a_refused_call_is_a_symptom_too() -> None:
    refused = ToolExecution(tool_name="rm", error="Rejected: not allowed", started=False)
    assert build_causal_chain([refused]).symptoms[0].label == "rm was refused: Rejected: not allowed"


@pytest.mark.parametrize(
    ("turns", "rings"),
    [
        ("a a a", [{"c1"}]),
        ("a b a b", [{"c1", "c2"}]),
        ("a b c a b", [{"c1", "c2", "c3"}]),
        ("a a", []),
        ("a b a", []),
        ("aaa", []),
        ("ab ab ab", []),
        ("a b c d a b", []),
        ("a b x a b", [{"c1", "c2", "c3"}]),
    ],
)
def test_turns_that_come_back_are_a_cycle(turns: str, rings: list[set[str]]) -> None:
    calls = [ran(name, turn) for turn, names in enumerate(turns.split()) for name in names]
    chain, builder = build_causal_chain(calls), TraceBuilder()
    assert [set(conflict.nodes) for conflict in chain.cycles] == rings
    assert bool(chain.edges) == bool(rings)
    assert [set(c.nodes) for c in builder.extend(calls) if isinstance(c, Conflict)] == rings


def test_two_calls_that_fail_in_turns_are_a_cycle_through_their_failures() -> None:
    calls = [ran("book", turn, error="no", seat=turn % 2) for turn in range(3)]
    chain = build_causal_chain(calls)
    assert [set(conflict.nodes) for conflict in chain.cycles] == [{"c1", "e1", "c2", "e2"}]
    assert [c.nodes for c in TraceBuilder().extend(calls) if isinstance(c, Conflict)] == [("c1", "e1", "c2", "e2")]
    assert types(chain) == {"c1": "intermediate", "e1": "symptom", "c2": "intermediate", "e2": "symptom"}


def test_what_comes_before_a_failure_again_and_again_has_a_part_in_it() -> None:
    calls = [ran(name, turn, error="no" if name == "b" else None) for turn, name in enumerate("abab")]
    assert types(build_causal_chain(calls)) == {"c1": "intermediate", "c2": "intermediate", "e1": "symptom"}


def test_a_call_that_only_repeats_itself_stays_the_root_of_its_failure() -> None:
    chain = build_causal_chain([ran("a", turn, error="no") for turn in range(3)])
    assert edges(chain) == ["c1 causes e1", "c1 causes c1"]
    assert types(chain) == {"c1": "root_cause", "e1": "symptom"}


def test_a_failure_that_the_same_call_got_over_is_not_a_reason_for_another_try() -> None:
    chain = build_causal_chain([ran("a", 0, error="no", x=1), ran("a", 1, x=1), ran("a", 2, x=2)])
    assert edges(chain) == ["c1 causes e1", "c1 prevents e1"]


def test_the_events_of_a_run_tell_the_same_as_its_executions() -> None:
    calls = [ran("find", 0, "it is C-42"), ran("book", 1, error="no", who="C-42"), ran("book", 2, who="C-42", at=2)]
    told = [
        ToolCompleteEvent(
            tool_name=c.tool_name, arguments=c.arguments, result=c.result, error=c.error, iteration=c.iteration + 1
        )
        for c in calls
    ]
    assert build_causal_chain(told) == build_causal_chain(calls)


def test_claims_about_calls_are_edges_between_them() -> None:
    calls = [ran("find", 0), ran("book", 1, error="no")]
    chain = build_causal_chain([*calls, {"label": "e1", "causes": ["c1", "a strike"], "type": "root_cause"}])
    assert edges(chain) == ["c2 causes e1", "c1 causes e1", "a strike causes e1"]
    assert chain.nodes["e1"].node_type == "symptom"


# -- laws -----------------------------------------------------------------------------------------

VALUES = st.sampled_from(["AA-181", "BK-58291", "C-42", "hello", "12345", "{}", '["X-1"]', ""]) | st.text(max_size=30)
TRACES = st.lists(
    st.builds(
        lambda name, arguments, result, failed, again: (
            ToolExecution(
                tool_name=name,
                arguments=arguments,
                result=None if failed else result,
                error=result if failed else None,
            ),
            again,
        ),
        st.sampled_from("abc"),
        st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2),
        VALUES,
        st.booleans(),
        st.booleans(),
    ),
    max_size=14,
)


def in_turns(trace: list[tuple[ToolExecution, bool]]) -> list[list[ToolExecution]]:
    turns: list[list[ToolExecution]] = []
    for execution, again in trace:
        if not turns or not again:
            turns.append([])
        values = {a: getattr(execution, a) for a in ("tool_name", "arguments", "result", "error")}
        turns[-1].append(ToolExecution(**values, iteration=len(turns) - 1))
    return turns


def graph(builder: TraceBuilder) -> tuple[Any, ...]:
    return (builder.nodes, builder.edges, builder.seen)


@given(TRACES)
def test_a_graph_that_grows_turn_by_turn_is_the_one_that_is_made_at_once(
    trace: list[tuple[ToolExecution, bool]],
) -> None:
    turns = in_turns(trace)
    grown, at_once = TraceBuilder(), TraceBuilder()
    changes = [change for turn in turns for change in grown.extend(turn)]
    all_changes = at_once.extend([execution for turn in turns for execution in turn])
    assert graph(grown) == graph(at_once)
    assert changes == all_changes


@given(TRACES)
def test_a_trace_makes_a_chain_whose_parts_fit(trace: list[tuple[ToolExecution, bool]]) -> None:
    calls = [execution for turn in in_turns(trace) for execution in turn]
    chain = build_causal_chain(calls)
    assert len(chain.symptoms) == len(
        {(repr(c.tool_name), repr(c.arguments), c.error) for c in calls if c.error is not None}
    )
    towards = {e.effect for e in chain.edges if e.relation == "causes" and e.cause != e.effect}
    assert all(node.id not in towards for node in chain.root_causes)
    for node in chain.root_causes:
        assert any(chain.path(node.id, symptom.id) for symptom in chain.symptoms)


@given(st.text(max_size=300))
def test_values_of_any_text_are_found_and_bounded(text: str) -> None:
    assert all(3 <= len(value) <= 200 for value in result_values(text))
    assert set(argument_values({"a": text})) <= {text.strip(), *result_values(text)}


def test_a_huge_result_gives_a_bounded_number_of_values() -> None:
    assert len(result_values(" ".join(f"id-{n}" for n in range(100_000)))) == 500
    assert len(result_values(json.dumps([f"id-{n}" for n in range(100_000)]))) <= 500
    assert len(result_values("[" * 100_000)) == 0
