"""Evaluation of agents: cases with checks, run as a graph over a journal, and what came of them.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_eval.cases import Case, Suite
    from locus_plugin_eval.comparison import Comparison, compare
    from locus_plugin_eval.evaluation import EvaluationStopped, evaluate
    from locus_plugin_eval.junit import write_junit
    from locus_plugin_eval.page import draw_page
    from locus_plugin_eval.reading import InvalidCases, read_cases
    from locus_plugin_eval.report import Report
    from locus_plugin_eval.tape import Tape
    from locus_plugin_eval.trials import CheckResult, Trial

__all__ = [
    "Case",
    "CheckResult",
    "Comparison",
    "EvaluationStopped",
    "InvalidCases",
    "Report",
    "Suite",
    "Tape",
    "Trial",
    "compare",
    "draw_page",
    "evaluate",
    "read_cases",
    "write_junit",
]

_MODULES = {
    "cases": ("Case", "Suite"),
    "comparison": ("Comparison", "compare"),
    "evaluation": ("EvaluationStopped", "evaluate"),
    "junit": ("write_junit",),
    "page": ("draw_page",),
    "reading": ("InvalidCases", "read_cases"),
    "report": ("Report",),
    "tape": ("Tape",),
    "trials": ("CheckResult", "Trial"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_eval.{module}": names for module, names in _MODULES.items()})
