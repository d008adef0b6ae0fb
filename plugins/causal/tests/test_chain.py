"""Chains as values: what is asked of them, at any size and in any shape, and the forms that they are written in."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import CheckpointError
from locus.core.state import AgentState
from locus_plugin_causal import (
    CausalChain,
    CausalEdge,
    CausalEdgeEvent,
    CausalNode,
    CausalNodeEvent,
    Conflict,
    NodeType,
    Relation,
    build_causal_chain,
)
from locus_plugin_causal.search import ring as ring_through
from locus_plugin_causal.search import shortest

C, P = Relation.CAUSES, Relation.PREVENTS


def chain_of(*edges: str, nodes: str = "") -> CausalChain:
    """A chain from ``"a>b"`` (causes) and ``"a|b"`` (prevents)."""
    made = [CausalEdge(e[0], e[2], C if e[1] == ">" else P) for e in edges]
    names = dict.fromkeys([*nodes, *(name for e in edges for name in (e[0], e[2]))])
    return CausalChain([CausalNode(name, name.upper()) for name in names], made)


EDGES = st.lists(
    st.builds(
        lambda a, r, b: f"{a}{r}{b}", st.sampled_from("abcde"), st.sampled_from(">>>|"), st.sampled_from("abcde")
    ),
    max_size=12,
)


def reachable(chain: CausalChain) -> set[tuple[str, str]]:
    """Every pair of which the first leads to the second by one edge or more: Warshall's algorithm."""
    found = {(e.cause, e.effect) for e in chain.edges if e.relation is C}
    for middle, a, b in product(chain.nodes, repeat=3):
        if (a, middle) in found and (middle, b) in found:
            found.add((a, b))
    return found


@given(EDGES)
def test_every_cycle_is_one_and_every_node_that_comes_back_is_in_one_s_component(edges: list[str]) -> None:
    chain = chain_of(*edges)
    causes = {(e.cause, e.effect) for e in chain.edges if e.relation is C}
    leads = reachable(chain)
    around = [conflict.nodes for conflict in chain.cycles]
    for ring in around:
        assert len(set(ring)) == len(ring)
        assert all(pair in causes for pair in pairwise((*ring, ring[0])))
    for node in chain.nodes:
        together = [ring for ring in around if (node, ring[0]) in leads and (ring[0], node) in leads]
        assert len(together) == ((node, node) in leads)


@given(EDGES)
def test_paths_are_ways_along_causes_and_the_shortest_is_among_them(edges: list[str]) -> None:
    chain = chain_of(*edges, nodes="ab")
    causes = {(e.cause, e.effect) for e in chain.edges if e.relation is C}
    paths = chain.paths("a", "b")
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert (path[0], path[-1]) == ("a", "b")
        assert len(set(path)) == len(path)
        assert all(pair in causes for pair in pairwise(path))
    found = chain.path("a", "b")
    assert (found is not None) == (("a", "b") in reachable(chain)) == bool(paths)
    if found is not None:
        assert found in paths
        assert len(found) == min(map(len, paths))


@given(EDGES)
def test_contradictions_are_pairs_that_are_said_to_cause_and_to_prevent(edges: list[str]) -> None:
    found = {conflict.nodes for conflict in chain_of(*edges).contradictions}
    assert found == {(e[0], e[2]) for e in edges if e[1] == ">" and f"{e[0]}|{e[2]}" in edges}


@given(EDGES)
def test_roots_cause_and_are_not_caused(edges: list[str]) -> None:
    chain = chain_of(*edges, nodes="abcde")
    causing = {e[0] for e in edges if e[1] == ">"}
    caused = {e[2] for e in edges if e[1] == ">"}
    assert {node.id for node in chain.roots} == causing - caused


@given(EDGES, st.floats(0, 1))
def test_a_chain_survives_json_and_a_checkpoint(edges: list[str], confidence: float) -> None:
    chain = chain_of(*edges).with_node(CausalNode("z", 'a "label"\n', NodeType.SYMPTOM, confidence, "trace"))
    assert CausalChain.from_json(json.loads(json.dumps(chain.to_json()))) == chain
    state = AgentState().with_metadata("chain", chain)
    assert AgentState.from_checkpoint(json.loads(json.dumps(state.to_checkpoint()))) == state


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"format": 2, "nodes": [], "edges": []},
        {"format": 1, "nodes": [["a"]], "edges": []},
        {"format": 1, "nodes": [["a", "a", "cause"]], "edges": []},
        {"format": 1, "nodes": [["a", "a", "symptom", float("nan")]], "edges": []},
        {"format": 1, "nodes": [], "edges": [["a", "b"]]},
    ],
)
def test_what_is_not_a_chain_is_refused(data: Any) -> None:
    with pytest.raises(CheckpointError, match="causal"):
        CausalChain.from_json(data)


def test_an_edge_needs_its_nodes() -> None:
    with pytest.raises(ValueError, match="needs the node 'b'"):
        CausalChain([CausalNode("a", "A")], [CausalEdge("a", "b")])


def test_what_is_said_twice_is_kept_once_and_the_later_wins() -> None:
    chain = chain_of("a>b").with_node(CausalNode("a", "other")).with_edge(CausalEdge("a", "b", confidence=0.1))
    assert (chain.nodes["a"].label, len(chain.nodes)) == ("other", 2)
    assert [edge.confidence for edge in chain.edges] == [0.1]
    joined = chain_of("a>b", "b>c").merge(chain)
    assert (joined.nodes["a"].label, [e.confidence for e in joined.edges]) == ("A", [1.0, 1.0])


def test_the_hypothesis_is_the_first_root_cause_else_the_first_node() -> None:
    assert CausalChain().hypothesis is None
    chain = chain_of("a>b")
    assert chain.hypothesis is chain.nodes["a"]
    named = chain.with_node(CausalNode("b", "B", NodeType.ROOT_CAUSE))
    assert named.hypothesis is named.nodes["b"]


def test_a_chain_of_a_hundred_thousand_nodes_is_not_a_recursion() -> None:
    n = 100_000
    names = [f"n{i}" for i in range(n)]
    nodes = [CausalNode(name, name) for name in names]
    edges = [CausalEdge(a, b) for a, b in pairwise(names)]
    chain = CausalChain(nodes, edges)
    assert chain.cycles == ()
    assert chain.paths(names[0], names[-1]) == (tuple(names),)
    (ring,) = CausalChain(nodes, [*edges, CausalEdge(names[-1], names[0])]).cycles
    assert len(ring.nodes) == n


def test_exponentially_many_paths_are_searched_for_no_longer_than_was_said() -> None:
    layers = [f"{side}{i}" for i in range(40) for side in "lr"]
    edges = [CausalEdge(a, b) for i in range(39) for a in (f"l{i}", f"r{i}") for b in (f"l{i + 1}", f"r{i + 1}")]
    chain = CausalChain([CausalNode(name, name) for name in [*layers, "goal"]], edges)
    assert chain.paths("l0", "goal", steps=10_000) == ()
    assert len(chain.paths("l0", "l39", limit=50)) == 50
    assert chain.paths("nowhere", "l1") == ()


def test_a_way_is_looked_for_no_longer_than_was_said() -> None:
    row = {str(n): [str(n + 1)] for n in range(10)}
    assert shortest(row, ["0"], "9", most=10) == tuple(map(str, range(10)))
    assert shortest(row, ["0"], "9", most=9) is None
    assert ring_through({**row, "9": ["0"]}, "0", most=5) is None


# -- pictures -------------------------------------------------------------------------------------


def test_a_picture_shows_types_and_relations() -> None:
    nodes = [CausalNode(t.value, t.value, t) for t in NodeType]
    chain = CausalChain(nodes, [CausalEdge("root_cause", "symptom"), CausalEdge("unknown", "symptom", P)])
    assert chain.to_mermaid().splitlines() == [
        "flowchart LR",
        '    n0{{"root_cause"}}',
        '    n1["intermediate"]',
        '    n2(["symptom"])',
        '    n3("unknown")',
        "    n0 --> n2",
        "    n3 -. prevents .-> n2",
    ]
    assert chain.to_dot().splitlines() == [
        "digraph causes {",
        "    rankdir=LR;",
        '    n0 [label="root_cause", shape=hexagon];',
        '    n1 [label="intermediate", shape=box];',
        '    n2 [label="symptom", shape=ellipse];',
        '    n3 [label="unknown", shape=plain];',
        "    n0 -> n2;",
        '    n3 -> n2 [style=dashed, label="prevents"];',
        "}",
    ]


@given(
    st.text(max_size=40) | st.sampled_from(['"]; n0 --> n9', '"]\n    n0 --> n0', '\\"', "\\", "#quot;", "<script>"])
)
def test_no_label_can_draw(label: str) -> None:
    chain = CausalChain([CausalNode(label, label)])
    mermaid, dot = chain.to_mermaid(), chain.to_dot()
    assert len(mermaid.split("\n")) == 3
    assert mermaid.count('"') == 2
    assert not set(mermaid.split('"')[1]) & set("<>`[]{}")
    assert len(dot.split("\n")) == 5
    assert dot.replace("\\\\", "").replace('\\"', "").count('"') == 2


# -- claims ---------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["label", "causes", "prevents", "type", "confidence", "x"]) | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(ANYTHING, max_size=6) | ANYTHING)
def test_no_claim_however_malformed_breaks_a_chain(events: Any) -> None:
    chain = build_causal_chain(events)
    assert CausalChain.from_json(json.loads(json.dumps(chain.to_json()))) == chain
    assert all(0.0 <= node.confidence <= 1.0 for node in chain.nodes.values())
    labels = {
        " ".join(each["label"].split())
        for each in (events if isinstance(events, list) else [])
        if isinstance(each, dict) and isinstance(each.get("label"), str)
    }
    assert labels - {""} <= set(chain.nodes)
    _ = (chain.conflicts, chain.roots, chain.hypothesis, chain.to_mermaid(), chain.to_dot())


def test_claims_name_their_causes_by_label() -> None:
    chain = build_causal_chain(
        [
            {"label": "deploy", "type": "root_cause", "confidence": 0.9},
            {"label": "leak", "causes": ["deploy"], "type": "Intermediate", "confidence": "0.8"},
            {"label": "outage", "causes": ["leak", "load"], "type": "symptom", "confidence": 7},
            {"label": "rollback", "prevents": "outage", "type": "remedy", "confidence": None},
            {"label": " ", "type": "root_cause"},
            {"type": "root_cause"},
            "outage",
        ]
    )
    assert {n.id: (n.node_type.value, n.confidence) for n in chain.nodes.values()} == {
        "deploy": ("root_cause", 0.9),
        "leak": ("intermediate", 0.8),
        "outage": ("symptom", 1.0),
        "load": ("root_cause", 0.5),
        "rollback": ("unknown", 0.5),
    }
    assert [e.key for e in chain.edges] == [
        ("deploy", "leak", C),
        ("leak", "outage", C),
        ("load", "outage", C),
        ("rollback", "outage", P),
    ]
    assert chain.path("deploy", "outage") == ("deploy", "leak", "outage")


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        (math.nan, 0.5),
        (math.inf, 1.0),
        (-1, 0.0),
        (True, 0.5),
        ("high", 0.5),
        ("0.25", 0.25),
        ([], 0.5),
        (10**400, 0.5),
    ],
)
def test_a_claims_confidence_is_a_number_or_a_half(said: Any, stands: float) -> None:
    assert build_causal_chain([{"label": "a", "confidence": said}]).nodes["a"].confidence == stands


def test_a_label_that_is_named_before_it_is_described_gets_its_description() -> None:
    chain = build_causal_chain(
        [{"label": "b", "causes": ["a"]}, {"label": "a", "type": "root_cause", "confidence": 1}, {"label": "a"}]
    )
    assert chain.nodes["a"] == CausalNode("a", "a", NodeType.ROOT_CAUSE, 1.0)


def test_claims_may_go_round_and_contradict_themselves() -> None:
    chain = build_causal_chain(
        [{"label": "a", "causes": ["b"]}, {"label": "b", "causes": ["a"]}, {"label": "b", "prevents": ["a"]}]
    )
    assert [conflict.kind for conflict in chain.conflicts] == ["cycle", "contradiction"]
    assert set(chain.cycles[0].nodes) == {"a", "b"}
    assert chain.contradictions == (Conflict("contradiction", ("b", "a")),)


def test_invalid_events_are_left_out() -> None:
    node = CausalNodeEvent(node_id="a", label="A", node_type="symptom", confidence=1.0, source="trace")
    wrong = [
        CausalNodeEvent(node_id="b", label="B", node_type="?"),
        CausalEdgeEvent(cause="a", effect="gone", relation="causes"),
        CausalEdgeEvent(cause="a", effect="a", relation="?"),
    ]
    assert build_causal_chain([node, *wrong]) == CausalChain([CausalNode("a", "A", NodeType.SYMPTOM, 1.0, "trace")])


def types_of(chain: CausalChain) -> dict[str, str]:
    return {node.id: node.node_type.value for node in chain.nodes.values()}


def test_an_untyped_chain_gets_types_by_place() -> None:
    claims = [
        {"label": "deploy"},
        {"label": "leak", "causes": ["deploy"]},
        {"label": "outage", "causes": ["leak", "load"]},
        {"label": "holiday"},
        {"label": "alarm", "prevents": ["outage"]},
    ]
    chain = build_causal_chain(claims)
    assert types_of(chain) == {
        "deploy": "root_cause",
        "leak": "intermediate",
        "outage": "symptom",
        "load": "root_cause",
        "holiday": "unknown",
        "alarm": "unknown",
    }
    assert [node.id for node in chain.root_causes] == ["deploy", "load"]
    assert chain.hypothesis == chain.nodes["deploy"]


def test_a_type_that_was_given_is_kept_and_a_word_that_is_not_a_type_counts_as_none() -> None:
    chain = build_causal_chain(
        [{"label": "a", "type": "symptom"}, {"label": "b", "type": "culprit", "causes": ["a"]}, {"label": "b"}]
    )
    assert types_of(chain) == {"a": "symptom", "b": "symptom"}


def test_nodes_of_a_ring_are_intermediate_and_one_that_causes_itself_is_not_its_own_cause() -> None:
    ring = [{"label": "a", "causes": ["b"]}, {"label": "b", "causes": ["a"]}]
    assert types_of(build_causal_chain(ring)) == {"a": "intermediate", "b": "intermediate"}
    own = [{"label": "a", "causes": ["a"]}, {"label": "b", "causes": ["a"]}]
    assert types_of(build_causal_chain(own)) == {"a": "root_cause", "b": "symptom"}


LABELS = st.sampled_from("abcde")


@given(
    st.lists(
        st.fixed_dictionaries(
            {"label": LABELS, "causes": st.lists(LABELS, max_size=2)},
            optional={"prevents": st.lists(LABELS, max_size=1)},
        ),
        max_size=6,
    )
)
def test_a_type_follows_from_causes_and_effects(claims: list[dict[str, Any]]) -> None:
    chain = build_causal_chain(claims)
    causes = [(e.cause, e.effect) for e in chain.edges if e.relation is Relation.CAUSES and e.cause != e.effect]
    by_place = {
        (False, False): "unknown",
        (True, False): "root_cause",
        (True, True): "intermediate",
        (False, True): "symptom",
    }
    for node, found in types_of(chain).items():
        assert found == by_place[any(c == node for c, _ in causes), any(e == node for _, e in causes)]
