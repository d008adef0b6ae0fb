"""`create_research_workflow`: the nodes put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from locus.models import get_model
from locus_deepagent.research.causes import make_causal_inference_node
from locus_deepagent.research.execute import make_execute_node
from locus_deepagent.research.recovery import make_replan_node, route_after_grounding
from locus_deepagent.research.scoring import RulesFirst, make_grounding_eval_node
from locus_deepagent.research.writing import make_regenerate_summary_node, make_summarize_node
from locus_plugin_graph import END, START, StateGraph

if TYPE_CHECKING:
    from locus.models import Model
    from locus_plugin_graph import CompiledGraph

__all__ = ["create_research_workflow"]

#: Super-steps of a run, where the numbers of replans and rewrites do not need more.
_LEAST_STEPS: Final = 100


def create_research_workflow(
    *,
    model: Model | str,
    tools: Iterable[object],
    system_prompt: str = "",
    output_schema: Any = None,
    grounding_threshold: float = 0.65,
    max_replans: int = 2,
    max_regenerations: int = 1,
    max_iterations: int = 20,
    summarization_model: Model | str | None = None,
    grounding_model: Model | str | RulesFirst | None = None,
    reflexion: bool = True,
    causal_inference: bool = True,
    checkpointer: Any = None,
) -> CompiledGraph:
    """A graph that researches, writes a summary, checks it, and rewrites or researches again where it does not hold.

    Run it on ``{KEY_PROMPT: "..."}``; the result's ``values`` have `KEY_SUMMARY`, `KEY_CLAIMS`, `KEY_EVIDENCE` and the
    other keys. All of its nodes are pure: a run that died goes on with what is recorded, and asks again what was
    not written yet, the last call of a model or the last two. Another run of a thread begins with no evidence.

    Args:
        model: of the agent that researches and of the causal inference, ``"provider:model"`` or a `Model`.
        tools: what the agent may call.
        system_prompt: who the agent is; ``""`` = a researcher.
        output_schema: the form of `KEY_STRUCTURED_OUTPUT`, as for `Agent`; None = no such value.
        grounding_threshold: the share of the claims, 0.0 to 1.0, that must be confirmed.
        max_replans: how often a run researches again.
        max_regenerations: how often a run rewrites its summary, before any replan.
        max_iterations: of one execution of the agent.
        summarization_model: who writes the summary; None = ``model``.
        grounding_model: who judges it; None = ``model``. `RulesFirst` asks only about what rules leave open: fewer
            calls, and a small model is right more often.
        reflexion: whether the agent's steps are judged.
        causal_inference: whether there is a node `causal_inference`.
        checkpointer: where threads are kept, as for `Agent`.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        ValueError: a number is out of range.
    """
    primary = get_model(model)
    # One object for one name: it may hold connections, or weights.
    made = {model: primary} if isinstance(model, str) else {}

    def chosen(given: Model | str | None) -> Model:
        if given is None:
            return primary
        if not isinstance(given, str):
            return given
        if given not in made:
            made[given] = get_model(given)
        return made[given]

    writer = chosen(summarization_model)
    judge: Model | RulesFirst
    if isinstance(grounding_model, RulesFirst):
        judge = RulesFirst(chosen(grounding_model.model))
    else:
        judge = chosen(grounding_model)
    graph = StateGraph(effect="pure")
    graph.add_node("execute", make_execute_node(primary, tools, system_prompt, reflexion, max_iterations))
    if causal_inference:
        graph.add_node("causal_inference", make_causal_inference_node(primary))
    graph.add_node("summarize", make_summarize_node(writer, output_schema))
    graph.add_node("grounding_eval", make_grounding_eval_node(judge))
    graph.add_node("regenerate", make_regenerate_summary_node(writer, output_schema))
    graph.add_node("replan", make_replan_node())
    graph.add_edge(START, "execute")
    if causal_inference:
        graph.add_edge("execute", "causal_inference").add_edge("causal_inference", "summarize")
    else:
        graph.add_edge("execute", "summarize")
    graph.add_edge("summarize", "grounding_eval")
    router = route_after_grounding(grounding_threshold, max_replans, max_regenerations)
    graph.add_conditional_edges("grounding_eval", router, [END, "regenerate", "replan"])
    graph.add_edge("regenerate", "grounding_eval").add_edge("replan", "execute")
    steps = 4 + 2 * max_regenerations + 5 * max_replans
    return graph.compile(checkpointer=checkpointer, max_steps=max(_LEAST_STEPS, steps), name="research")
