"""The program whose runs the tests look at: a shop with an agent, and a graph. The models follow a script."""

from __future__ import annotations

from typing import Any

from locus import Agent, Hook, Reject, ToolContext, tool
from locus.core.messages import ToolCall, Usage
from locus.journal import JournalStore
from locus.models import Price
from locus_plugin_graph import END, START, NodeContext, StateGraph
from locus_testkit import ScriptedModel, call

#: What the pages must show as text, and nothing else: markup, an end of a script, bidi, ANSI, a tag character.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</script>{{ 7*7 }} \u202egnp.exe\u202c \x1b[31mred\x1b[0m \U000e0041 javascript:alert(1)"
)
SECRET = "postgres://shop:hunter2@db.example/orders"


@tool(effect="pure")
def find_order(number: int) -> str:
    """Find an order."""
    return f'{{"order": {number}, "item": "desk lamp", "pieces": 2, "price": 84.50}}'


@tool(effect="once")
def charge(order: int, cents: int) -> str:
    """Take the money for an order."""
    return f"{cents} cents charged for order {order}"


@tool(effect="once")
def refund(order: int, ctx: ToolContext[None]) -> str:
    """Give the money back, where a person agrees."""
    return f"the person said {ctx.interrupt(f'Refund order {order}?', options=['yes', 'no'])}"


@tool
def broken(reason: str) -> str:
    """Fail."""
    raise ValueError(f"the warehouse does not answer: {reason}")


@tool
def echo(text: str, password: str = "") -> str:
    """Say what was said."""
    return text


class NoDeletes(Hook):
    """A guard with a reason."""

    guard = True

    def on_tool_call(self, call: ToolCall) -> Reject | None:
        """Refuse what deletes."""
        return Reject("orders are never deleted") if call.name == "delete_order" else None


@tool
def delete_order(number: int) -> str:
    """Delete an order."""
    return "deleted"


@tool
async def research(ctx: ToolContext[None], question: str) -> str:
    """Ask another agent."""
    helper = Agent(ScriptedModel("Lamps of 2024 had no switch."), name="helper")
    return str((await ctx.run_child(helper, question)).text)


TOOLS = [find_order, charge, refund, broken, echo, delete_order, research]
_PRICE = Price(prompt=3.0, completion=15.0, cached=0.3)
_USAGE = Usage(prompt_tokens=1_840, completion_tokens=126, cached_tokens=1_200)


def make_agent(*turns: Any, store: JournalStore | None = None, **options: Any) -> Agent[Any, Any]:
    """The shop's agent, whose model answers with these turns."""
    model = ScriptedModel(*turns, name="scripted:shop", price=_PRICE, usage=_USAGE)
    return Agent(model, tools=TOOLS, hooks=[NoDeletes()], name="shop", checkpointer=store, **options)


#: Prompt -> what the model answers.
RUNS: dict[str, tuple[Any, ...]] = {
    "Charge order 4711 and tell me what was in it.": (
        ["I look the order up first.", call("find_order", number=4711)],
        [call("charge", order=4711, cents=8450), call("echo", text=f"log in to {SECRET}", password="hunter2")],
        "Order 4711 had two desk lamps. I charged $84.50.",
    ),
    "Delete order 9 and tidy up.": (
        [call("delete_order", number=9)],
        [call("broken", reason="timeout after 30 s")],
        "I could not delete the order: orders are never deleted.",
    ),
    "Why do the lamps of 2024 fail?": (
        [call("research", question="What is known about lamps of 2024?")],
        "They had no switch.",
    ),
    "Repeat after me.": ([call("echo", text=HOSTILE)], HOSTILE),
    "Give the money for order 12 back.": ([call("refund", order=12)], "Done."),
}


async def fill(store: JournalStore) -> None:
    """Make a thread of each of the runs, named ``run-1`` and so on."""
    for number, (prompt, turns) in enumerate(RUNS.items(), 1):
        await make_agent(*turns, store=store).run(prompt, thread_id=f"run-{number}")


def make_graph(store: JournalStore | None = None) -> Any:
    """A graph of two nodes, of which the second one asks a person."""
    graph = StateGraph()
    graph.add_node("collect", lambda values: {"orders": [17, 18]})
    graph.add_node("<review>", _review)
    graph.add_edge(START, "collect").add_edge("collect", "<review>").add_edge("<review>", END)
    return graph.compile(name="orders", checkpointer=store)


def _review(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
    return {"said": ctx.interrupt("Are these all?", options=["yes", "no"])}


#: For ``locus view shop.py:agent``: goes on with the run that waits.
agent = make_agent("Done.")
