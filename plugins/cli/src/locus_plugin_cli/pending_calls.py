"""The pending calls of a thread, which run when it is resumed, whatever the thread says about them.

A thread from a file is data: its question may say one thing while the call behind it does another. So a question is
shown with its call, and the calls of a run that was imported are shown, and confirmed, before they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus.core.errors import InputError
from locus.core.journal import EXECUTE, Asked, Outcome, Paused, StepId
from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.journal import JournalHost
from locus_kit.calls import show_call
from locus_plugin_cli.approval_prompt import is_person_present
from locus_plugin_cli.output import say
from locus_plugin_cli.streams import confirm
from locus_plugin_cli.text import one_line

__all__ = ["calls_of_questions", "confirm_imported"]

#: Why a run is paused that was imported; see `locus.timetravel.import_thread`.
_IMPORTED = "imported"


def calls_of_questions(state: AgentState, questions: Sequence[Asked]) -> Mapping[str, ToolCall]:
    """The call that each question is about, by interrupt id; found by its place, not by what the question says."""
    calls = state.unanswered
    found = {}
    for question in questions:
        root = question.step_id.root
        if root.node == EXECUTE and root.iteration == state.iteration and root.ordinal < len(calls):
            found[question.interrupt_id] = calls[root.ordinal]
    return found


def confirm_imported(host: JournalHost, thread: str) -> bool:
    """Whether an open run may go on: an imported run with pending calls only after a yes.

    Args:
        host: the thread.
        thread: its id.

    Raises:
        InputError: no person can be asked.
    """
    newest = host.claim.entries[-1].body if host.claim.entries else None
    if not isinstance(newest, Paused) or newest.reason != _IMPORTED or host.open_node != EXECUTE:
        return True
    done = {step.step_id for step in host.steps if isinstance(step, Outcome)}
    state = host.state
    calls = [call for i, call in enumerate(state.unanswered) if StepId(state.iteration, EXECUTE, i) not in done]
    if not calls:
        return True
    say(f"thread {one_line(thread)} was imported; resuming it runs these calls:")
    for call in calls:
        say(f"  {show_call(call)}")
    if not is_person_present():
        raise InputError(
            "nobody can be asked without a terminal: resume the thread in one, or, if the file is your own, "
            "import it with `locus threads import --trust`"
        )
    return confirm("Run them?")
