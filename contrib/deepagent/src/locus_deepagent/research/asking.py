"""How a node of a research workflow asks a model: as a call of the run, or by itself where no graph runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.messages import Message, Role
from locus.models import Model, ModelRequest, ModelResponse, OutputSpec

if TYPE_CHECKING:
    from locus_plugin_graph import NodeContext

__all__ = ["ask", "make_request"]


def make_request(
    system: str, user: str, *, output: OutputSpec | None, ctx: NodeContext | None, purpose: str
) -> ModelRequest:
    """A request of one turn.

    Args:
        system: the instructions.
        user: what is to be worked on.
        output: the form of the answer, or None for any text.
        ctx: of the node; its deadline is the request's.
        purpose: what the call is for.
    """
    return ModelRequest(
        messages=(Message(Role.SYSTEM, system), Message(Role.USER, user)),
        output=output,
        deadline=None if ctx is None else ctx.deadline,
        purpose=purpose,
    )


async def ask(request: ModelRequest, model: Model, ctx: NodeContext | None) -> ModelResponse:
    """The answer of a model.

    In a graph the call is recorded and charged to the run, and a resume does not repeat it.

    Raises:
        ModelError: the model failed.
        BudgetExceeded: the run may not spend more.
    """
    if ctx is None:
        return await model.complete(request)
    return await ctx.call_model(request, model=model, purpose=request.purpose)
