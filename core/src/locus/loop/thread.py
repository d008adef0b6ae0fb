"""A thread between two segments: what the next one is to do, and what the journal says about the last."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from attrs import field

from locus.core.directives import Option, chosen_options
from locus.core.errors import InterruptMismatch, StepFailed, closest
from locus.core.events import INTERRUPTED, Ending
from locus.core.frozen import EMPTY, FrozenDict, frozen
from locus.core.journal import CHILD, EXECUTE, Asked, ModelFailed, Outcome, StepId
from locus.core.messages import Message
from locus.journal.host import JournalHost
from locus.models.call import ChildUsage, ModelCallResult
from locus.tools.account import child_thread
from locus.tools.outcome import with_recorded_results

if TYPE_CHECKING:
    from locus.core.directives import Choice
    from locus.core.journal import Transition
    from locus.core.state import AgentState
    from locus.tools.account import Account

#: Why the calls of a run were not run that the user left behind.
WENT_ON = "the user went on with something else"


@frozen(kw_only=True)
class Segment:
    """What one call of ``run`` or ``resume`` is to do.

    Args:
        before: messages that precede the prompt (a transcript).
        prompt: the user's turn; None to resume.
        seed: a state to start from, instead of what the thread holds.
        metadata: entries to set on the state before the first node.
        answer: what the caller answers, see `matched_answers`; None for nothing.
        max_attempts: after how many attempts that died in one place the run is set aside; None = never.
        one_run: the thread has one run only: an unfinished run found there is resumed.
        request_id: what the caller names the turn by, or ``""``.
        run_id: of the run that a turn begins, or ``""`` for a new one.
        yield_after: after how many iterations the segment ends, and the run does not; None = never.
    """

    before: tuple[Message, ...] = ()
    prompt: Message | None = None
    seed: AgentState | None = None
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=FrozenDict)
    answer: Any = None
    max_attempts: int | None = None
    one_run: bool = False
    request_id: str = ""
    run_id: str = ""
    yield_after: int | None = None

    @property
    def is_resumed(self) -> bool:
        """Whether it has no turn of its own."""
        return self.prompt is None and self.seed is None


@frozen(kw_only=True)
class SegmentResult:
    """How a segment ended.

    Args:
        state: the state as last committed.
        ending: why it ended.
        questions: open questions.
    """

    state: AgentState
    ending: Ending
    questions: tuple[Asked, ...] = ()


def recorded_ending(transition: Transition) -> Ending:
    """Why a run ended, or was about to, as far as its journal says."""
    error = None if transition.error is None else StepFailed(transition.error)
    return Ending(transition.why, transition.satisfied, transition.detail, error, transition.iteration_finished)


def ended_before(host: JournalHost, *, answered: bool) -> SegmentResult | None:
    """How a thread ended or why it waits, read from its journal alone; None when it can go on."""
    last = host.last
    if last is not None and host.open_node is None:
        return SegmentResult(state=host.state, ending=recorded_ending(last))
    questions = tuple(host.open_questions.values())
    if questions and not answered:
        return SegmentResult(state=host.state, ending=Ending(INTERRUPTED), questions=questions)
    return None


def closed_state(host: JournalHost) -> AgentState:
    """The thread's state with an unfinished run closed: a new turn begins, its open calls are answered."""
    return host.state if host.open_node is None else with_recorded_results(host, host.state, WENT_ON)


def matched_answers(host: JournalHost, given: Any) -> dict[str, Any]:
    """Answers by interrupt id.

    A mapping all of whose keys are ids of open questions answers those. Anything else is the answer to the one
    question that is open; a mapping too, unless a key is the id of a question that was asked before, or nearly one.

    Args:
        host: the thread.
        given: what the caller answered; None for nothing.

    Raises:
        InterruptMismatch: it does not fit the open questions.
    """
    if given is None:
        return {}
    questions = host.open_questions
    by_id = isinstance(given, Mapping) and all(key in questions for key in given)
    if not by_id:
        strange = _explain_ids(host, given) if isinstance(given, Mapping) else None
        if strange is not None:
            raise InterruptMismatch(strange)
        if len(questions) != 1:
            raise InterruptMismatch(_ask_for_id(questions))
    answers = dict(given) if by_id else {next(iter(questions)): given}
    return {interrupt_id: _choose(questions[interrupt_id], answer) for interrupt_id, answer in answers.items()}


def _choose(asked: Asked, answer: Any) -> Any:
    """The answer as it is recorded: of an option its label.

    True chooses the first option that lets a call run, and False the first that does not, where there is one that does.
    What a person adds to an option is recorded as it is, see `Option`.

    Raises:
        InterruptMismatch: it is not one of the options.
    """
    options = asked.options
    if isinstance(answer, bool) and any(isinstance(each, Option) and each.allow for each in options):
        found = [
            each
            for each in options
            if (isinstance(each, Option) and each.allow) is answer and chosen_options([each], str(each))
        ]
    else:
        found = chosen_options(options, answer)
    if options and not found:
        labels = ", ".join(map(_describe_option, options))
        raise InterruptMismatch(f"{answer!r} is not an answer to {asked.question!r}; choose one of {labels}")
    if not found or isinstance(answer, Mapping):
        return answer
    return found[0].label if isinstance(found[0], Option) else found[0]


def _describe_option(option: Choice) -> str:
    takes = option.takes if isinstance(option, Option) else ""
    if takes == "arguments":
        return "{'arguments': {...}}"
    return f"{str(option)!r}, {{'reason': '...'}}" if takes else repr(str(option))


def _ask_for_id(questions: Mapping[str, Asked]) -> str:
    if not questions:
        return "0 questions are open; resume without an answer goes on"
    listed = "; ".join(f"{i!r}: {q.question}" for i, q in questions.items())
    return f"{len(questions)} questions are open ({listed}); resume with {{id: answer}} for those you answer"


def _explain_ids(host: JournalHost, given: Mapping[Any, Any]) -> str | None:
    """What is wrong with a mapping that was meant to be answers by id; None when it was not."""
    open_ids = host.open_questions
    for key in given:
        if not isinstance(key, str) or key in open_ids:
            continue
        if key in host.questions:
            still = f"open: {', '.join(open_ids)}" if open_ids else "no question is open"
            return f"question {key!r} is already answered; {still}"
        near = closest(key, open_ids)
        if near is not None:
            return f"no open question has the id {key!r}; did you mean {near!r}?"
    return None


async def restore_account(account: Account, host: JournalHost) -> None:
    """Let an account know what a run has spent in earlier processes, with all runs below it that were left open.

    Children would be found one by one, when the bodies that run them are entered again; the first to go on could not
    see what the others had spent. Only those that keep their journals in a store of their own are found that late.
    """
    spent = [step.value if isinstance(step, Outcome) else step for step in host.steps]
    usages = [s.usage for s in spent if isinstance(s, ModelCallResult | ChildUsage | ModelFailed)]
    usages.append(None if host.last is None else host.last.uncharged)
    account.catch_up(sum((usage for usage in usages if usage is not None), host.state.usage))
    for ordinal in range(len(host.state.unanswered)) if host.open_node == EXECUTE else ():
        call = StepId(host.state.iteration, EXECUTE, ordinal)
        await restore_children(account.open_below(ordinal), host, call)
        while call in host.retried_steps:
            call = call.at_attempt(call.attempt + 1)
            await restore_children(account.open_below(ordinal), host, call)


async def restore_children(part: Account, host: JournalHost, call: StepId) -> None:
    """Let an account know what the children of a step have spent that were left open."""
    for number in count():
        step_id = call.inner(CHILD, number)
        if host.find_unchecked(step_id) is None:  # else it has ended, and its parent was charged with it
            below = await JournalHost.peek(host.store, child_thread(host, step_id))
            if below is None:
                return
            await restore_account(part.open_below(step_id), below)
