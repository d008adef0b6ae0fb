"""A graph as one self-contained page: the drawing, and of a thread its steps, values and open questions.

The drawing is SVG that is made here: the page loads nothing, so that it can be kept, sent and opened without a network.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from locus.core import encode_data
from locus.core.errors import NothingToResume
from locus.journal import JournalHost, read_history
from locus_plugin_graph.plan import END, START, Plan
from locus_plugin_graph.values import PREFIX, RECORD

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus_plugin_graph.app import CompiledGraph

__all__ = ["draw_page", "draw_svg"]

_WIDTH, _HEIGHT, _GAP = 150, 34, 46
#: Characters of a value that the page shows.
_SHOWN = 2_000

_STYLE = """body { font: 14px system-ui, sans-serif; margin: 2em; color: #222 } table { border-collapse: collapse }
td, th { border: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top }
pre { margin: 0; white-space: pre-wrap; max-width: 60em } .ask { background: #fff0c2; padding: .5em }
rect { fill: #f4f4f4; stroke: #666 } .ran rect { fill: #d7f0d7; stroke: #2b7a2b }
.next rect { fill: #fff0c2; stroke: #a87900 }
path { fill: none; stroke: #666 } .maybe { stroke-dasharray: 4 3 } text { font: 13px system-ui, sans-serif }"""


async def draw_page(app: CompiledGraph, thread_id: str | None = None) -> str:
    """The page of a graph.

    Args:
        app: the graph.
        thread_id: a thread of its store, or None.

    Raises:
        NothingToResume: the thread does not exist.
    """
    title = app.agent.name or "graph"
    parts = [f"<h1>{escape(title)}</h1>"]
    if thread_id is None:
        parts.append(draw_svg(app.plan))
    else:
        store = app.threads.store
        host = await JournalHost.peek(store, thread_id)
        if host is None:
            raise NothingToResume(f"thread {thread_id!r} does not exist")
        parts += [f"<p>thread {escape(thread_id)}</p>", draw_svg(app.plan, host.state)]
        for asked in host.open_questions.values():
            options = " | ".join(map(str, asked.options))
            parts.append(
                f'<p class="ask">{escape(asked.tool_name)} asks: {escape(asked.question)} {escape(options)}</p>'
            )
        parts += ["<table><tr><th>step</th><th>what</th><th>values that changed</th></tr>"]
        before: dict[str, Any] = {}
        for entry in await read_history(store, thread_id):
            now = {key: value for key, value in entry.state.metadata.items() if key.startswith(PREFIX)}
            shown = {key.removeprefix(PREFIX): value for key, value in now.items() if before.get(key) != value}
            parts.append(f"<tr><td>{entry.n}</td><td>{escape(entry.why)}</td><td>{_values(shown)}</td></tr>")
            before = now
        parts.append("</table>")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f"{head}<body>{''.join(parts)}</body></html>\n"


def _values(values: dict[str, Any]) -> str:
    rows = []
    for key, value in values.items():
        text = json.dumps(encode_data(value), ensure_ascii=False)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
        rows.append(f"<pre>{escape(key)}: {escape(text)}</pre>")
    return "".join(rows)


def draw_svg(plan: Plan, state: AgentState | None = None) -> str:
    """The graph as SVG, level by level from START."""
    places = _places(plan)
    record = {} if state is None else state.metadata.get(RECORD, {})
    due, ran = {name for name, _ in record.get("next", ())}, set(record.get("ran", ()))
    width = max(x for x, _ in places.values()) + _WIDTH + 20
    height = max(y for _, y in places.values()) + _HEIGHT + 20
    marks = []
    for source in (START, *plan.nodes):
        always = plan.edges.get(source, ())
        marks += [_arrow(places, source, target, "always") for target in always]
        marks += [_arrow(places, source, t, "maybe") for t in plan.targets(source) if t not in always]
    marks += [_arrow(places, source, join.target, "always") for join in plan.joins for source in join.sources]
    for name, (x, y) in places.items():
        kind = "next" if name in due else "ran" if name in ran or (name == END and record and not due) else "idle"
        label = {START: "START", END: "END"}.get(name, name)
        marks.append(
            f'<g class="{kind}"><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{x + _WIDTH // 2}" y="{y + 22}" text-anchor="middle">{escape(label[:20])}</text></g>'
        )
    size = 'markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto"'
    arrow = f'<marker id="a" {size}><path d="M0,0 L7,3 L0,6"/></marker>'
    opening = f'<svg width="{width}" height="{height}" role="img" aria-label="graph">'
    return f"{opening}<defs>{arrow}</defs>{''.join(marks)}</svg>"


def _places(plan: Plan) -> dict[str, tuple[int, int]]:
    """Where each node is: as far down as it is from START."""
    level, todo = {START: 0}, [START]
    while todo:
        source = todo.pop(0)
        joined = [join.target for join in plan.joins if source in join.sources]
        exact = [t for b in plan.branches.get(source, ()) if b.mapping is not None for t in b.mapping.values()]
        for target in (*plan.edges.get(source, ()), *exact, *joined, *plan.targets(source)):
            if target not in level and target != END:
                level[target] = level[source] + 1
                todo.append(target)
    level[END] = max(level.values()) + 1
    rows: dict[int, int] = {}
    places = {}
    for name, row in level.items():
        places[name] = (10 + rows.get(row, 0) * (_WIDTH + _GAP), 10 + row * (_HEIGHT + _GAP))
        rows[row] = rows.get(row, 0) + 1
    return places


def _arrow(places: dict[str, tuple[int, int]], source: str, target: str, kind: str) -> str:
    (x1, y1), (x2, y2) = places[source], places[target]
    x1, x2 = x1 + _WIDTH // 2, x2 + _WIDTH // 2
    if y2 > y1:
        y1, bend = y1 + _HEIGHT, (y2 - y1) // 3
        line = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
    else:  # back, or to itself: around the right side
        side = max(x1, x2) + _WIDTH // 2 + 24
        line = f"M{x1 + _WIDTH // 2},{y1 + 12} C{side},{y1 + 12} {side},{y2 + 22} {x2 + _WIDTH // 2},{y2 + 22}"
    return f'<path class="{kind}" marker-end="url(#a)" d="{line}"/>'
