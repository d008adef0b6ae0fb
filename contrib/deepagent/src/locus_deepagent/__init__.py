"""Deep agents, put together from plugins, and a research workflow that checks its own summaries.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_deepagent.factory import create_deepagent
    from locus_deepagent.research.causes import make_causal_inference_node
    from locus_deepagent.research.execute import make_execute_node
    from locus_deepagent.research.recovery import make_replan_node, route_after_grounding
    from locus_deepagent.research.scoring import RulesFirst, make_grounding_eval_node
    from locus_deepagent.research.workflow import create_research_workflow
    from locus_deepagent.research.writing import make_regenerate_summary_node, make_summarize_node
    from locus_deepagent.submission import DeepAgentReport

__all__ = [
    "DeepAgentReport",
    "RulesFirst",
    "create_deepagent",
    "create_research_workflow",
    "make_causal_inference_node",
    "make_execute_node",
    "make_grounding_eval_node",
    "make_regenerate_summary_node",
    "make_replan_node",
    "make_summarize_node",
    "route_after_grounding",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_deepagent.factory": ("create_deepagent",),
        "locus_deepagent.submission": ("DeepAgentReport",),
        "locus_deepagent.research.causes": ("make_causal_inference_node",),
        "locus_deepagent.research.execute": ("make_execute_node",),
        "locus_deepagent.research.recovery": (
            "make_replan_node",
            "route_after_grounding",
        ),
        "locus_deepagent.research.scoring": ("RulesFirst", "make_grounding_eval_node"),
        "locus_deepagent.research.workflow": ("create_research_workflow",),
        "locus_deepagent.research.writing": (
            "make_regenerate_summary_node",
            "make_summarize_node",
        ),
    },
)
