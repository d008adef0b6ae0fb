"""How hooks are called: one rule a family, one module each. This is all that the loop imports."""

from locus.hooks.dispatch.call import is_failure
from locus.hooks.dispatch.decide import decide_route, decide_tool_call
from locus.hooks.dispatch.node import first_answer, fold
from locus.hooks.dispatch.observe import notify
from locus.hooks.dispatch.review import filter_input, filter_progress, review
from locus.hooks.dispatch.wrap import onion

__all__ = [
    "decide_route",
    "decide_tool_call",
    "filter_input",
    "filter_progress",
    "first_answer",
    "fold",
    "is_failure",
    "notify",
    "onion",
    "review",
]
