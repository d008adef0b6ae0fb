"""`tool`: what can become a tool, what it keeps of the function, and what is refused with which words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from locus.core.errors import ToolDefinitionError
from locus.tools import Bound, Tool, ToolContext, ToolExample, as_tool, tool


def search(query: str, limit: int = 3) -> str:
    """Search the catalogue.

    Args:
        query: what to look for.
        limit: how many results.
    """
    return f"{limit} of {query}"


def called(made: Tool[..., Any], **arguments: Any) -> Any:
    """What the body returns for arguments as a model gives them."""
    bound = made.bind(arguments)
    assert isinstance(bound, Bound), str(bound)
    return bound.call()


@pytest.mark.parametrize(
    "make",
    [
        lambda fn: tool(fn),
        lambda fn: tool()(fn),
        lambda fn: tool(timeout=5)(fn),
        lambda fn: tool(fn, timeout=5),
        as_tool,
    ],
    ids=["@tool", "@tool()", "@tool(...)", "tool(fn, ...)", "as_tool"],
)
def test_every_way_to_make_a_tool_gives_the_same_contract(make: Callable[..., Tool[..., Any]]) -> None:
    made = make(search)

    assert (made.name, made.description) == ("search", "Search the catalogue.")
    assert made.spec.properties["query"] == {"type": "string", "description": "what to look for."}
    assert made.spec.properties["limit"] == {"type": "integer", "description": "how many results.", "default": 3}
    assert called(made, query="tea") == "3 of tea"


def test_a_tool_is_still_the_function() -> None:
    made = tool(search, name="find")

    assert made("tea", limit=1) == "1 of tea"
    assert made.__name__ == "search"  # type: ignore[attr-defined]
    assert made.__doc__ == search.__doc__
    assert inspect.signature(made) == inspect.signature(search)


def test_options_default_to_the_cautious_choice() -> None:
    made = tool(search)

    assert (made.idempotent, made.effect, made.timeout, made.ask_on_unknown) == (False, "once", None, False)


def test_options_are_kept() -> None:
    made = tool(
        search,
        name="find",
        description="Find things.",
        idempotent="thread",
        effect="keyed",
        timeout=1.5,
        ask_on_unknown=True,
        max_result_chars=500,
    )

    assert (made.name, made.description, made.spec.name) == ("find", "Find things.", "find")
    assert (made.idempotent, made.effect, made.timeout) == ("thread", "keyed", 1.5)
    assert (made.ask_on_unknown, made.max_result_chars) == (True, 500)


def test_a_tool_can_be_changed_and_keeps_the_rest() -> None:
    first = tool(search, idempotent=True, timeout=2)

    renamed = tool(first, name="find")

    assert (renamed.name, renamed.idempotent, renamed.timeout) == ("find", True, 2)
    assert first.name == "search"
    assert tool(first) is first
    assert as_tool(first) is first


def test_a_tool_cannot_be_changed_in_place() -> None:
    made = tool(search)

    with pytest.raises(AttributeError):
        made.timeout = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.spec.parameters["type"] = "array"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no spaces"}, "got 'no spaces'"),
        ({"name": "x" * 65}, "1 to 64 letters"),
        ({"name": "ünique"}, "1 to 64 letters"),
        ({"idempotent": "run"}, "idempotent must be False, True or 'thread', got 'run'"),
        ({"idempotent": 1}, "idempotent must be False, True or 'thread', got 1"),
        ({"effect": "twice"}, "'pure', 'keyed' or 'once'"),
        ({"timeout": 0}, "greater than 0"),
        ({"timeout": float("nan")}, "greater than 0"),
        ({"timeout": True}, "greater than 0"),
        ({"max_result_chars": 3}, "at least 200"),
        ({"ask_on_unknown": "yes"}, "True or False"),
        ({"description": None}, "description must be a str, got None"),
        ({"time_out": 3}, "has no option 'time_out'; did you mean 'timeout'?"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(search, **options)

    assert message in str(caught.value)


# --- what can be a tool ----------------------------------------------------------------------------


class Shop:
    """A shop."""

    def __init__(self, city: str) -> None:
        self.city = city

    def price(self, item: str) -> str:
        """The price of an item."""
        return f"{item} in {self.city}"

    @tool(timeout=9)
    async def order(self, item: str) -> str:
        """Order an item."""
        return f"ordered {item} in {self.city}"

    @staticmethod
    def hours(day: str) -> str:
        """When it is open."""
        return day

    @classmethod
    def branches(cls, country: str) -> str:
        """Where it is."""
        return f"{cls.__name__} {country}"

    def __call__(self, item: str) -> str:
        """Buy an item."""
        return f"bought {item} in {self.city}"


def test_a_bound_method_is_a_tool() -> None:
    made = tool(Shop("Ulm").price)

    assert (made.name, tuple(made.spec.properties)) == ("price", ("item",))
    assert called(made, item="tea") == "tea in Ulm"


def test_a_static_and_a_bound_class_method_are_tools() -> None:
    assert called(tool(Shop.hours), day="Monday") == "Monday"
    assert called(tool(Shop.branches), country="Peru") == "Shop Peru"


@pytest.mark.anyio
async def test_a_method_marked_in_the_class_body_binds_to_its_instance() -> None:
    made = Shop("Bonn").order

    assert (made.name, made.timeout, made.is_async, made.receiver) == ("order", 9, True, False)
    assert tuple(made.spec.properties) == ("item",)
    assert await called(made, item="tea") == "ordered tea in Bonn"
    assert await made("milk") == "ordered milk in Bonn"


def test_an_object_that_can_be_called_is_a_tool() -> None:
    made = tool(Shop("Rome"))

    assert (made.name, made.description, made.is_async) == ("Shop", "Buy an item.", False)
    assert called(made, item="tea") == "bought tea in Rome"


def test_what_a_partial_fixes_is_not_the_models_to_choose() -> None:
    def lookup(client: object, key: str, retries: int = 2) -> str:
        """Look a key up."""
        return f"{client}:{key}:{retries}"

    made = tool(functools.partial(lookup, "db", retries=7))

    assert (made.name, made.description) == ("lookup", "Look a key up.")
    assert tuple(made.spec.properties) == ("key",)
    assert called(made, key="k") == "db:k:7"


def test_a_partial_hides_a_value_that_has_no_schema() -> None:
    def lookup(key: str, *, client: threading_lock) -> str:  # type: ignore[name-defined]  # noqa: F821
        """Look a key up."""
        return key

    made = tool(functools.partial(lookup, client=object()))

    assert tuple(made.spec.properties) == ("key",)


def test_a_wrapped_function_keeps_the_signature_of_the_inner_one() -> None:
    @functools.wraps(search)
    def logged(*args: Any, **kwargs: Any) -> str:
        return search(*args, **kwargs).upper()

    assert called(tool(logged), query="tea") == "3 OF TEA"


async def coroutine(x: int) -> int:
    """Return it."""
    return x


class AsyncCallable:
    """Returns it."""

    async def __call__(self, x: int) -> int:
        """Return it."""
        return x


@pytest.mark.parametrize(
    "fn",
    [
        coroutine,
        functools.partial(coroutine),
        AsyncCallable(),
        functools.partial(AsyncCallable()),
        AsyncCallable().__call__,
    ],
    ids=["function", "partial", "object", "partial of an object", "bound method"],
)
def test_async_is_recognised_however_it_is_wrapped(fn: Callable[..., Any]) -> None:
    assert tool(fn, name="x").is_async


def test_sync_is_recognised() -> None:
    assert not tool(search).is_async
    assert not tool(functools.partial(search)).is_async


def generator(x: int) -> Iterator[int]:
    """Count."""
    yield x


async def async_generator(x: int) -> AsyncIterator[int]:
    """Count."""
    yield x


def variadic(*queries: str) -> str:
    """Search."""
    return ""


def keywords(**options: str) -> str:
    """Search."""
    return ""


def unannotated(query) -> str:  # type: ignore[no-untyped-def]
    """Search."""
    return ""


def lock(it: inspect.Signature) -> str:
    """Search."""
    return ""


def unresolved(it: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Search."""
    return ""


def two_contexts(a: ToolContext[None], b: ToolContext[str] | None = None) -> str:
    """Search."""
    return ""


def mangled(__it: str) -> str:
    """Search."""
    return ""


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (variadic, ["variadic", "'queries'", "take a list"]),
        (keywords, ["keywords", "'options'", "one dict"]),
        (unannotated, ["unannotated", "'query'", "has no annotation", "`query: str`"]),
        (lock, ["lock", "'it'", "inspect.Signature", "functools.partial"]),
        (unresolved, ["unresolved", "'it'", "'Nowhere'", "TYPE_CHECKING"]),
        (two_contexts, ["two_contexts", "'b'", "'a'", "one is enough"]),
        (generator, ["generator", "return a list"]),
        (async_generator, ["async_generator", "return a list"]),
        (Shop, ["Shop", "is a class", "instance"]),
        (len, ["builtins.len", "'obj'", "has no annotation"]),
        (vars(Shop)["branches"], ["branches", "classmethod", "tool(TheClass.method)"]),
        (lambda x: x, ["<lambda>", 'name="..."']),
        (3, ["3 cannot be called"]),
    ],
    ids=lambda v: getattr(v, "__name__", type(v).__name__) if not isinstance(v, list) else "words",
)
def test_what_cannot_be_described_is_refused_when_it_is_defined(fn: Any, words: list[str]) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(fn)

    for word in words:
        assert word in str(caught.value)


def test_the_context_is_injected_at_any_position_and_not_shown() -> None:
    def first(ctx: ToolContext[str], query: str) -> Any:
        """Search."""
        return ctx, query

    def middle(query: str, ctx: ToolContext | None = None, limit: int = 1) -> Any:
        """Search."""
        return ctx, query

    context: Any = object()
    for fn in (first, middle):
        made = tool(fn)
        bound = made.bind({"query": "tea"})
        assert isinstance(bound, Bound)
        assert made.context_parameter == "ctx"
        assert "ctx" not in made.spec.properties
        assert bound.call(context) == (context, "tea")
        assert not isinstance(made.bind({"query": "tea", "ctx": None}), Bound)


def test_parameters_that_are_positional_only_are_passed_by_position() -> None:
    def power(ctx: ToolContext[None], base: int, exponent: int = 2, /, *, negative: bool = False) -> Any:
        """Raise to a power."""
        return (-1 if negative else 1) * base**exponent

    made = tool(power)

    assert called(made, base=3) == 9
    assert called(made, negative=True, exponent=3, base=2) == -8


# --- the docstring is the contract -----------------------------------------------------------------


def numpy_style(query: str) -> str:
    """Search the catalogue.

    Use it before ordering.

    Parameters
    ----------
    query : str
        What to look for.

    Returns
    -------
    str
        One line a hit.
    """
    return query


def google_style(query: str) -> str:
    """Search the catalogue.

    Use it before ordering.

    Args:
        query (str): What to look for.

    Returns:
        One line a hit.
    """
    return query


def rest_style(query: str) -> str:
    """Search the catalogue.

    Use it before ordering.

    :param query: What to look for.
    :returns: One line a hit.
    """
    return query


@pytest.mark.parametrize("fn", [numpy_style, google_style, rest_style])
def test_all_docstring_styles_say_the_same(fn: Callable[[str], str]) -> None:
    made = tool(fn)

    assert made.description == "Search the catalogue.\n\nUse it before ordering.\n\nReturns: One line a hit."
    assert made.spec.properties["query"]["description"] == "What to look for."


def test_other_sections_stay_in_the_description() -> None:
    def pay(amount: int) -> None:
        """Pay.

        Never call it twice for one invoice.

        Args:
            amount: in cents.

        Raises:
            ValueError: the amount is negative.

        Example:
            pay(100)
        """

    description = tool(pay).description

    assert "Never call it twice" in description
    assert "Raises ValueError: the amount is negative." in description
    assert "pay(100)" in description
    assert "in cents" not in description


def test_without_a_docstring_the_name_speaks() -> None:
    def find_customer(name: str) -> str:
        return name

    assert tool(find_customer).description == "find customer"


def test_a_lone_surrogate_in_a_docstring_does_not_reach_the_model() -> None:
    def odd(x: int) -> None: ...

    odd.__doc__ = "Odd \ud800.\n\nArgs:\n    x: also \udc00."
    spec = tool(odd).spec

    assert spec.description == "Odd \ufffd."
    assert spec.properties["x"]["description"] == "also \ufffd."


# --- examples --------------------------------------------------------------------------------------


def test_examples_may_be_written_as_dicts() -> None:
    made = tool(search, examples=[{"user": "Tea?", "arguments": {"query": "tea"}, "answer": "Yes."}])

    assert made.examples == (ToolExample(user="Tea?", arguments={"query": "tea"}, answer="Yes."),)
    assert made.spec.examples == made.examples


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"user": "Tea?", "arguments": {"querry": "tea"}}, "did you mean 'query'?"),
        ({"user": "Tea?", "argument": {}}, "examples[0]"),
        ("tea", "examples[0] must be a ToolExample"),
    ],
)
def test_an_example_that_would_mislead_is_refused(example: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(search, examples=[example])

    assert message in str(caught.value)
