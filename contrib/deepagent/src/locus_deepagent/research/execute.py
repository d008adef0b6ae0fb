"""The node `execute`: an agent gathers evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from locus import Agent
from locus_deepagent.research.evidence import extend, facts_of
from locus_deepagent.research.keys import (
    KEY_EVIDENCE,
    KEY_EXECUTE_PROMPT,
    KEY_GROUNDING_FACTS,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_REPLAN_COUNT,
    KEY_STRUCTURED_OUTPUT,
    read_count,
    read_text,
    read_texts,
)
from locus_plugin_signals.sender import EV_RESEARCH_EXECUTE_COMPLETED, EV_RESEARCH_EXECUTE_STARTED, emit

if TYPE_CHECKING:
    from locus.models import Model
    from locus_plugin_graph import NodeContext

__all__ = ["RESEARCHER", "make_execute_node"]

RESEARCHER: Final = (
    "You are a research agent. Investigate the topic that you are given with your tools. Gather as much evidence as "
    "you can before you conclude, and say in your conclusion only what the results of the tools say."
)

#: Which run of the thread wrote the values that must not outlive it, and what a replan made the prompt of it.
_RUN: Final = "research_run"


def make_execute_node(
    model: Model | str,
    tools: Iterable[object],
    system_prompt: str = "",
    reflexion: bool = True,  # noqa: FBT001, FBT002  the requirement's signature
    max_iterations: int = 20,
) -> Any:
    """A node that runs an agent and keeps what its tools said.

    Reads `KEY_EXECUTE_PROMPT`, else `KEY_PROMPT`. Writes `KEY_EVIDENCE` and `KEY_GROUNDING_FACTS`: of each successful
    call the first 2,000 characters of its result, unless it is empty or false, and ``"[conclusion] "`` with what the
    agent said. It adds to the evidence that is there, up to 40 pieces and 60,000 characters.

    Args:
        model: ``"provider:model"`` or a `Model`.
        tools: what the agent may call.
        system_prompt: who it is; ``""`` = a researcher.
        reflexion: whether its steps are judged, which costs model calls.
        max_iterations: of one execution.

    Raises:
        ConfigError: the agent cannot be built.
    """
    options: dict[str, Any] = {"reflexion": True} if reflexion else {}
    agent: Agent[Any, Any] = Agent(
        model,
        tools=list(tools),
        system_prompt=system_prompt or RESEARCHER,
        max_iterations=max_iterations,
        name="researcher",
        **options,
    )
    return _Execute(agent)


@frozen
class _Execute:
    agent: Agent[Any, Any]

    async def __call__(self, values: Mapping[str, Any], ctx: NodeContext | None = None) -> dict[str, Any]:
        update = _begin(values, ctx)
        values = {**values, **update}
        prompt = read_text(values, KEY_EXECUTE_PROMPT) or read_text(values, KEY_PROMPT)
        if not prompt.strip():
            raise ValueError(f"expected a text to research under {KEY_PROMPT!r}, got {values.get(KEY_PROMPT)!r:.80}")
        replan = read_count(values, KEY_REPLAN_COUNT)
        await emit(EV_RESEARCH_EXECUTE_STARTED, prompt_preview=prompt, replan=replan)
        result = await (self.agent.run(prompt) if ctx is None else ctx.run_child(self.agent, prompt))
        if result.failed and not result.ending.has_answer_fault:  # an answer that was cut off leaves its evidence
            result.raise_for_failure()
        given = values.get(KEY_GROUNDING_FACTS)
        facts = given if isinstance(given, list | tuple) else ()
        found, conclusion = facts_of(result)
        update[KEY_EVIDENCE], update[KEY_GROUNDING_FACTS] = extend(
            read_texts(values, KEY_EVIDENCE), facts, found, conclusion
        )
        await emit(EV_RESEARCH_EXECUTE_COMPLETED, fact_count=len(update[KEY_GROUNDING_FACTS]))
        return update


def _begin(values: Mapping[str, Any], ctx: NodeContext | None) -> dict[str, Any]:
    """What a new run of a thread begins with: neither evidence, counts nor a replan of the run before it."""
    if ctx is None:
        return {}
    before, now = values.get(_RUN), {_RUN: ctx.run_id}
    if not isinstance(before, str) or before == ctx.run_id:
        return now
    return {
        **now,
        KEY_EVIDENCE: [],
        KEY_EXECUTE_PROMPT: "",
        KEY_GROUNDING_FACTS: [],
        KEY_REGENERATION_COUNT: 0,
        KEY_REPLAN_COUNT: 0,
        KEY_STRUCTURED_OUTPUT: None,
    }
