"""The loop as a picture: drawn from the table of edges that the router itself goes by."""

from __future__ import annotations

from locus.loop.router import Node, legal

__all__ = ["edges", "loop"]

_WIDTH, _HEIGHT = 720, 330
_BOX = 120, 44
#: The middle of each node.
_PLACES = {
    Node.THINK: (110, 130),
    Node.EXECUTE: (360, 130),
    Node.REFLECT: (610, 130),
    Node.TERMINATE: (360, 290),
}
#: How each edge bends (how far its middle is moved), the text beside it, and where the text is.
_EDGES = {
    (Node.THINK, Node.EXECUTE): ((0, -14), "tool calls", (235, 112)),
    (Node.THINK, Node.THINK): ((0, 0), "answer sent back", (110, 52)),
    (Node.THINK, Node.TERMINATE): ((-30, 30), "an answer", (140, 240)),
    (Node.EXECUTE, Node.THINK): ((0, 22), "otherwise", (235, 176)),
    (Node.EXECUTE, Node.REFLECT): ((0, 0), "by a policy", (485, 122)),
    (Node.EXECUTE, Node.TERMINATE): ((0, 0), "condition met", (420, 220)),
    (Node.REFLECT, Node.THINK): ((0, -110), "always", (360, 38)),
    (Node.REFLECT, Node.TERMINATE): ((30, 30), "condition met", (585, 240)),
}


def edges() -> set[tuple[Node, Node]]:
    """Every edge of the router's table; what follows the end is the end, and is not drawn."""
    return {(node, then) for node in Node if node is not Node.TERMINATE for then in legal(node)}


def loop() -> str:
    """The loop as SVG.

    Raises:
        ValueError: the router has an edge that has no place here, or lost one that has.
    """
    if edges() != set(_EDGES):
        raise ValueError(f"the router's edges are not those that are drawn: {sorted(edges() ^ set(_EDGES))}")
    drawn = [_edge(*edge) for edge in _EDGES] + [_node(node) for node in Node]
    title = "Think, Execute, Reflect and Terminate, and the edges between them"
    return (
        f'<div class="diagram"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>{"".join(drawn)}</svg></div>'
    )


def _node(node: Node) -> str:
    (x, y), (width, height) = _PLACES[node], _BOX
    box = f'<rect class="node" x="{x - width / 2}" y="{y - height / 2}" width="{width}" height="{height}" rx="8"/>'
    return f'{box}<text x="{x}" y="{y + 4}" text-anchor="middle">{node.value.capitalize()}</text>'


def _edge(node: Node, then: Node) -> str:
    (bend_x, bend_y), label, (at_x, at_y) = _EDGES[node, then]
    (x1, y1), (x2, y2) = _PLACES[node], _PLACES[then]
    half_width, half_height = _BOX[0] / 2, _BOX[1] / 2
    if node is then:
        path = f"M{x1 - 20} {y1 - half_height} C{x1 - 40} 50 {x1 + 40} 50 {x1 + 20} {y1 - half_height}"
    elif abs(x2 - x1) > 2 * _BOX[0] * 2:  # over the node in the middle
        path = f"M{x1} {y1 - half_height} Q{(x1 + x2) / 2} {y1 + bend_y} {x2 + 35} {y2 - half_height}"
    elif y1 == y2:
        way = 1 if x2 > x1 else -1
        start, end = x1 + way * half_width, x2 - way * half_width
        path = f"M{start} {y1 + bend_y / 2} Q{(start + end) / 2} {y1 + bend_y} {end} {y2 + bend_y / 2}"
    else:
        way = (x1 > x2) - (x1 < x2)
        path = f"M{x1} {y1 + half_height} Q{(x1 + x2) / 2 + bend_x} {(y1 + y2) / 2 + bend_y} "
        path += f"{x2 + way * half_width} {y2 - half_height if not way else y2}"
    text = f'<text x="{at_x}" y="{at_y}" text-anchor="middle">{label}</text>'
    return f'<path class="edge" d="{path}" marker-end="url(#head)"/>{text}'
