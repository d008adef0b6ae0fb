"""What the distribution offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_KEYS = (
    "KEY_CAUSAL_CHAIN",
    "KEY_CAUSAL_CONFIDENCE",
    "KEY_CAUSAL_HYPOTHESIS",
    "KEY_CLAIMS",
    "KEY_EVIDENCE",
    "KEY_EXECUTE_PROMPT",
    "KEY_GROUNDING_FACTS",
    "KEY_GROUNDING_REASON",
    "KEY_GROUNDING_SCORE",
    "KEY_PROMPT",
    "KEY_REGENERATION_COUNT",
    "KEY_REPLAN_COUNT",
    "KEY_STRUCTURED_OUTPUT",
    "KEY_SUMMARY",
    "KEY_UNGROUNDED_CLAIMS",
)
_WORKFLOW = {
    **dict.fromkeys(_KEYS, "keys"),
    "RulesFirst": "scoring",
    "create_research_workflow": "workflow",
    "make_causal_inference_node": "causes",
    "make_execute_node": "execute",
    "make_grounding_eval_node": "scoring",
    "make_regenerate_summary_node": "writing",
    "make_replan_node": "recovery",
    "make_summarize_node": "writing",
    "route_after_grounding": "recovery",
}

plugin = Plugin(
    name="deepagent",
    api=(1, 0),
    summary="Puts plugins together: an agent for long work, and a research workflow that checks its own summaries.",
    provides={"commands": "locus_deepagent.command.registration"},
    compat_paths={
        "locus.deepagent:create_deepagent": "locus_deepagent.factory:create_deepagent",
        "locus.deepagent.factory:create_deepagent": "locus_deepagent.factory:create_deepagent",
        "locus.deepagent.factory:DeepAgentReport": "locus_deepagent.submission:DeepAgentReport",
        "locus.deepagent:create_research_workflow": "locus_deepagent.research.workflow:create_research_workflow",
        **{
            f"locus.deepagent.workflow:{name}": f"locus_deepagent.research.{home}:{name}"
            for name, home in _WORKFLOW.items()
        },
    },
)
