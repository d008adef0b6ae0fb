"""`AgentResult`: how a run ended, and everything it leaves behind."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import field

from locus.core.errors import AnswerFailed, RunFailed
from locus.core.events import Ending
from locus.core.frozen import EMPTY, frozen
from locus.core.lazy import Lazy
from locus.core.messages import Usage

if TYPE_CHECKING:
    import html
    from collections.abc import Mapping
    from datetime import datetime

    from locus.core.executions import ToolExecution
    from locus.core.journal import Asked
    from locus.core.state import AgentState
    from locus.journal.store import JournalStore
    from locus.models import output
    from locus.plugins import report
    from locus.schema import text

else:
    html = Lazy("html")
    output = Lazy("locus.models.output")
    report = Lazy("locus.plugins.report")
    text = Lazy("locus.schema.text")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Out = DefaultTypeVar("Out", covariant=True, default=Any)
else:
    Out = TypeVar("Out", covariant=True)


@frozen(kw_only=True)
class AgentResult(Generic[Out]):
    """How a run ended.

    Args:
        message: the text of the final answer, ``""`` without one.
        parsed: the answer as the output schema's type, or what a plugin made of the final state; None without a schema
            or when it does not follow it.
        stop_reason: as in `TerminateEvent`, such as ``"NoToolCalls"``.
        satisfied: the leaves of the condition that were satisfied.
        detail: the reason in a sentence.
        state: the final state.
        usage: tokens and dollars of the run, wrappers' attempts, plugins' calls and children included.
        reports: what plugins reported, by plugin; ``"plugins"`` holds what became of each plugin.
        interrupts: the open questions, when the run waits for a person.
        error: what went wrong: the exception, or its text when a journal is all that is left of it; or None.
        is_open: the run can be resumed: it waits for a person, for its time, for a worker that it made room for, or for
            the cause of a node's failure to be mended.
        not_before: when an open run wants to go on, or None: when it is resumed.
        iteration_finished: it ended where the model would have been asked again: ``state.iteration`` is the number of
            iterations, and not the index of the last one.
    """

    run_id: str
    thread_id: str
    message: str
    stop_reason: str
    state: AgentState
    parsed: Out | None = None
    satisfied: tuple[str, ...] = ()
    detail: str = ""
    usage: Usage = Usage()
    reports: Mapping[str, Any] = field(default=EMPTY, repr=False)
    interrupts: tuple[Asked, ...] = ()
    error: BaseException | str | None = None
    iteration_finished: bool = False
    is_open: bool = False
    not_before: datetime | None = None
    # Without a checkpointer the journal lives here, so that `agent.resume(result, answer)` can go on.
    store: JournalStore | None = field(default=None, repr=False, eq=False)

    @property
    def text(self) -> str:
        """The text of the final answer: the same as ``message``."""
        return self.message

    @property
    def ending(self) -> Ending:
        """Why the run ended: to be asked whether it was a cancel, a question or a failure."""
        error = self.error if isinstance(self.error, BaseException) else None
        return Ending(self.stop_reason, self.satisfied, self.detail, error, self.iteration_finished)

    @property
    def iterations(self) -> int:
        """How many iterations the run has begun: as many as there were model calls of the loop."""
        return self.state.iteration + (not self.iteration_finished)

    @property
    def cost(self) -> float | None:
        """Dollars, or None when no price was known, or all that was known is 0."""
        return self.usage.cost

    @property
    def failed(self) -> bool:
        """Whether something went wrong: an error, or an answer that is cut, filtered, refused, empty or invalid.

        A limit, a cancel or a question to a person is not a failure.
        """
        return self.ending.is_failure

    def raise_for_failure(self) -> AgentResult[Out]:
        """This result; for those who prefer an exception to looking at `stop_reason`.

        Raises:
            AnswerFailed: the answer is cut, filtered, refused, empty, or does not follow the output schema.
            RunFailed: the run ended with an error, which is chained.
        """
        ending = self.ending
        if ending.has_answer_fault:
            raise AnswerFailed(ending.reason, self.reports.get("output", ending.detail))
        if ending.is_failure:
            cause = self.error if isinstance(self.error, BaseException) else None
            raise RunFailed(ending.reason, str(self.error)) from cause
        return self

    # -- for people -------------------------------------------------------------------------------

    def __str__(self) -> str:
        """A page: the answer, why the run stopped, what it used, its calls."""
        return _as_text(self)

    def _repr_html_(self) -> str:
        return _as_html(self)

    def __rich__(self) -> object:
        # The caller has rich: it is not a dependency of the kernel.
        page: object = import_module("rich.text").Text(str(self))
        return page


def make_result(run: Any, ended: Any, store: JournalStore | None = None) -> AgentResult[Any]:
    """How a run ended.

    Args:
        run: the `SegmentContext` of its last segment.
        ended: the `SegmentResult`.
        store: what the result is to hold, where the agent has no store.
    """
    state, ending = ended.state, ended.ending
    last = state.last_assistant
    answer = last.text if last is not None and not ended.questions else ""
    parsed = None if ended.questions else _ask_plugins(run, state)
    if parsed is None and run.output is not None and answer:
        try:
            parsed = run.output.parse(answer)
        except output.OutputError as e:
            run.report("output", str(e))
    return AgentResult(
        run_id=state.run_id,
        thread_id=run.thread_id,
        message=answer,
        parsed=parsed,
        stop_reason=ending.reason,
        satisfied=ending.satisfied,
        detail=ending.detail,
        state=state,
        usage=state.usage,
        reports={**run.reports, "plugins": report.run_report(run.runtime.plugins, run.health.failures)},
        interrupts=ended.questions,
        error=ending.error,
        iteration_finished=ending.iteration_finished,
        is_open=run.host.open_node is not None,
        not_before=run.host.due,
        store=store,
    )


def _ask_plugins(run: Any, state: AgentState) -> Any:
    """What a plugin makes of the final state, or None."""
    for impl in run.runtime.hooks.impls("locus_parse_result"):
        try:
            parsed = impl.call(state)
        except Exception as e:  # noqa: BLE001 - it is a plugin's, and reported as its failure
            run.health.record(impl, e, isolated=True)
        else:
            if parsed is not None:
                return parsed
    return None


# -- the page ----------------------------------------------------------------------------------------

#: How many calls a page shows, and how much of the arguments and the result of each, in characters.
_CALLS, _WIDTH = 20, 80


def _as_text(result: AgentResult[Any]) -> str:
    """The page as plain text."""
    lines = [_printable(result.text) or "(no answer)", ""]
    lines += [f"{name}: {value}" for name, value in _facts(result)]
    calls = result.state.tool_executions
    lines += [f"  {_call(each)}" for each in calls[:_CALLS]]
    if len(calls) > _CALLS:
        lines.append(f"  and {len(calls) - _CALLS} more")
    return "\n".join(lines)


def _as_html(result: AgentResult[Any]) -> str:
    """The page as HTML, with everything escaped."""
    calls = result.state.tool_executions
    rows = [(name, value) for name, value in _facts(result) if name != "calls"]
    rows += [(f"call {n}", _call(each)) for n, each in enumerate(calls[:_CALLS], 1)]
    if len(calls) > _CALLS:
        rows.append(("calls", f"and {len(calls) - _CALLS} more"))
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    answer = html.escape(_printable(result.text) or "(no answer)")
    return f'<div><p style="white-space: pre-wrap">{answer}</p><table>{cells}</table></div>'


def _facts(result: AgentResult[Any]) -> list[tuple[str, str]]:
    facts = []
    if result.parsed is not None:
        facts.append(("parsed", text.safe_repr(result.parsed, 400)))
    for asked in result.interrupts:
        options = f" [{' | '.join(map(str, asked.options))}]" if asked.options else ""
        facts.append(("asks", _line(f"{asked.question}{options}")))
    detail = f" ({result.detail})" if result.detail else ""
    facts.append(("stopped", _line(f"{result.stop_reason}{detail}")))
    if result.error is not None:
        facts.append(("error", _line(result.ending.error_text or str(result.error))))
    used, calls = result.usage, len(result.state.tool_executions)
    cached = f" ({used.cached_tokens:,} cached)" if used.cached_tokens else ""
    cost = f", ${used.cost:.4g}" if used.cost is not None else ""
    tokens = f"{used.prompt_tokens:,} tokens in{cached}, {used.completion_tokens:,} out{cost}"
    turns = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    facts.append(("usage", f"{turns}, {tokens}"))
    if calls:
        facts.append(("calls", str(calls)))
    return facts


def _call(done: ToolExecution) -> str:
    given = ", ".join(f"{name}={text.safe_repr(value, 40)}" for name, value in done.arguments.items())
    came = f"failed: {_line(done.error)}" if done.error is not None else text.safe_repr(done.result or "", _WIDTH)
    return f"{_line(done.tool_name)}({given if len(given) <= _WIDTH else given[: _WIDTH - 3] + '...'}) -> {came}"


def _line(said: str) -> str:
    line = " ".join(_printable(said).split())
    return line if len(line) <= 2 * _WIDTH else f"{line[: 2 * _WIDTH - 3]}..."


def _printable(said: str) -> str:
    """The text without what drives a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text.clean_text(said))
