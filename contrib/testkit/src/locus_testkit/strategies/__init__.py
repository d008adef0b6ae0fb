"""Hypothesis strategies for every value of the kernel: whole, legal values that shrink to small ones.

``from locus_testkit import strategies as values``. Names are plural, as hypothesis' own are; every value that
comes out survives its JSON form and compares equal to itself (so: no NaN).
"""

from __future__ import annotations

from locus_testkit.strategies.conditions import conditions, leaves
from locus_testkit.strategies.data import data, json_values, metadata, moments, texts, tool_names
from locus_testkit.strategies.events import events, of_type
from locus_testkit.strategies.journals import Journal, bodies, deltas, journals, step_bodies
from locus_testkit.strategies.messages import (
    blocks,
    conversations,
    media_blocks,
    messages,
    raw_blocks,
    text_blocks,
    thinking_blocks,
    tool_calls,
    tool_results,
    usages,
)
from locus_testkit.strategies.models import (
    model_requests,
    model_responses,
    model_settings,
    scripts,
    tool_specs,
    turns,
)
from locus_testkit.strategies.states import (
    Growth,
    grown_states,
    growths,
    labels,
    reasoning_steps,
    stamps,
    state_pairs,
    states,
    tool_executions,
)

__all__ = [
    "Growth",
    "Journal",
    "blocks",
    "bodies",
    "conditions",
    "conversations",
    "data",
    "deltas",
    "events",
    "grown_states",
    "growths",
    "journals",
    "json_values",
    "labels",
    "leaves",
    "media_blocks",
    "messages",
    "metadata",
    "model_requests",
    "model_responses",
    "model_settings",
    "moments",
    "of_type",
    "raw_blocks",
    "reasoning_steps",
    "scripts",
    "stamps",
    "state_pairs",
    "states",
    "step_bodies",
    "text_blocks",
    "texts",
    "thinking_blocks",
    "tool_calls",
    "tool_executions",
    "tool_names",
    "tool_results",
    "tool_specs",
    "turns",
    "usages",
]
