"""What the model says in each example, and what the example must come to: the same for both sides."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["EXAMPLES", "Call", "Data", "Example", "find_turn"]


class Call(NamedTuple):
    """The model calls a tool."""

    tool: str
    arguments: dict[str, Any]


class Data(NamedTuple):
    """The model answers with a value of the type of this name."""

    type: str
    fields: dict[str, Any]


class Example(NamedTuple):
    """One example.

    Args:
        wanted: what its ``main`` returns.
        turns: what the model answers where the last message is the first of a pair, in the order of the pairs.
    """

    wanted: Any
    turns: tuple[tuple[str, str | Call | Data], ...] = ()


PROMPT = "an essay on the Little Prince"
BEST = "Below are some jokes about animals. Give the ID of the best one, from 0.\n\n"
JOKES = ["Lions lie.", "Cats nap.", "Bees buzz."]

EXAMPLES = {
    "hello": Example({"text": "ab"}),
    "quickstart": Example(
        {"answer": "It is 14.", "messages": 6, "llm_calls": 3},
        (
            ("Add 3 and 4, and multiply it by 2.", Call("add", {"a": 3, "b": 4})),
            ("7", Call("multiply", {"a": 7, "b": 2})),
            ("14", "It is 14."),
        ),
    ),
    "react": Example(
        {"first": "60 and foggy in SF.", "last": "90 and sunny in NY.", "messages": 8},
        (
            ("what is the weather in sf", Call("search", {"query": "weather in SF"})),
            ("60 degrees and foggy", "60 and foggy in SF."),
            ("what about ny", Call("search", {"query": "weather in NY"})),
            ("90 degrees and sunny", "90 and sunny in NY."),
        ),
    ),
    "reflection": Example(
        [PROMPT, "A rose.", "Too short.", "A rose, and a fox."],
        ((PROMPT, "A rose."), ("A rose.", "Too short."), ("Too short.", "A rose, and a fox.")),
    ),
    "map_reduce": Example(
        {"topic": "animals", "subjects": ["lions", "cats", "bees"], "jokes": JOKES, "best_joke": "Cats nap."},
        (
            (
                "Generate a list of examples related to: animals.",
                Data("Subjects", {"subjects": ["lions", "cats", "bees"]}),
            ),
            ("Generate a joke about lions", JOKES[0]),
            ("Generate a joke about cats", JOKES[1]),
            ("Generate a joke about bees", JOKES[2]),
            (BEST + "\n\n".join(JOKES), Data("Best", {"id": 1})),
        ),
    ),
    "approval": Example({"question": "Approve this action? Transfer $500", "yes": "approved", "no": "rejected"}),
    "subgraph": Example({"foo": "hi! foobar"}),
    "streaming": Example(
        {
            "updates": [("refine_topic", {"topic": "ice cream and cats"}), ("generate_joke", {"joke": "Cold paws."})],
            "words": ["Cold", " paws."],
            "notes": ["refining"],
        },
        (("Generate a joke about ice cream and cats", "Cold paws."),),
    ),
}


def find_turn(example: Example, last: str) -> str | Call | Data:
    """What the model answers.

    Args:
        example: the example.
        last: the text of the last message that it was sent.

    Raises:
        LookupError: the example does not say.
    """
    for asked, turn in example.turns:
        if asked == last:
            return turn
    raise LookupError(f"the example has no answer to {last!r}")
