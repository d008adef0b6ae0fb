"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = {
    "Case": "cases",
    "CheckResult": "trials",
    "Comparison": "comparison",
    "EvaluationStopped": "evaluation",
    "InvalidCases": "reading",
    "Report": "report",
    "Suite": "cases",
    "Tape": "tape",
    "Trial": "trials",
    "compare": "comparison",
    "draw_page": "page",
    "evaluate": "evaluation",
    "read_cases": "reading",
    "write_junit": "junit",
}

plugin = Plugin(
    name="eval",
    api=(1, 0),
    summary="Evaluates agents: cases with checks, repeats, intervals, comparisons, and reports (`locus eval`).",
    provides={"commands": "locus_plugin_eval.commands.registration"},
    compat_paths={f"locus.eval:{name}": f"locus_plugin_eval.{home}:{name}" for name, home in _NAMES.items()},
)
