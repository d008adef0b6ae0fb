"""Cases as tests: pytest collects files named ``*.eval.yaml``, with a test for each case.

It is loaded where it is asked for, and never because it is installed: ``pytest -p locus_plugin_eval.pytest_plugin``,
or a line in the ``conftest.py`` at the top::

    pytest_plugins = ["locus_plugin_eval.pytest_plugin"]

The agent is the one that the file names (``agent: shop.py:agent``), or that of ``--eval-agent``, or of the option
``eval_agent`` in the configuration. A test passes where the share of its trials that passed reaches the threshold
``pass`` of the file; without one, all must pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from locus.core.errors import LocusError
from locus_kit.agents import load_agent
from locus_plugin_eval.cases import Case, Suite
from locus_plugin_eval.evaluation import evaluate
from locus_plugin_eval.reading import read_cases
from locus_plugin_eval.report import Report
from locus_plugin_eval.tape import Tape

__all__ = ["CaseItem", "EvalFile", "pytest_addoption", "pytest_collect_file"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("eval", "evaluation of Locus agents")
    group.addoption("--eval-agent", metavar="FILE:NAME", help="The agent of all *.eval.yaml files.")
    group.addoption("--eval-replay", metavar="TAPE", help="Take the answers of models from this file of --record.")
    parser.addini("eval_agent", "The agent of *.eval.yaml files that name none, FILE:NAME from the root.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvalFile | None:
    """A file of cases."""
    return EvalFile.from_parent(parent, path=file_path) if file_path.name.endswith(".eval.yaml") else None


class EvalFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterable[CaseItem]:
        """A test for each case."""
        try:
            suite = read_cases(self.path)
        except LocusError as e:
            raise self.CollectError(str(e)) from e
        for case in suite.cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, suite=evolve(suite, cases=(case,)))


class _NotPassed(Exception):
    """A case did not pass; the message is what the test says."""


class CaseItem(pytest.Item):
    """A case as a test.

    Args:
        name: the id of the case.
        case: the case.
        suite: its file, with this case alone.
        more: what pytest passes on.
    """

    def __init__(self, *, name: str, case: Case, suite: Suite, **more: Any) -> None:
        super().__init__(name=name, **more)
        self.suite = suite
        for tag in case.tags:
            self.extra_keyword_matches.add(tag)

    def runtest(self) -> None:
        """Evaluate the agent on the case."""
        given = self.config.getoption("--eval-agent")
        root, folder = self.config.rootpath, self.path.parent
        reference, start = given, Path.cwd()
        if given is None:
            configured = self.config.getini("eval_agent")
            reference, start = (self.suite.agent, folder) if self.suite.agent else (configured, root)
        if not reference:
            raise _NotPassed(f"{self.path.name} names no agent; add `agent: FILE:NAME`, or pass --eval-agent")
        recorded = self.config.getoption("--eval-replay")
        tape = None if recorded is None else Tape(recorded, replays=True)
        agent = load_agent(str(reference), folder=start)

        async def run() -> Report:
            return await evaluate(agent, self.suite, tape=tape, label=str(reference))

        report = anyio.run(run)
        least = {"pass": self.suite.thresholds.get("pass", 1.0)}
        unmet = evolve(report, thresholds=least).find_unmet()
        if unmet:
            raise _NotPassed("\n".join([*unmet, *(line for row in report.rows for line in row.reasons), *report.notes]))
        for note in report.notes:
            warnings.warn_explicit(pytest.PytestWarning(note), None, str(self.path), 1)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What did not pass, without a traceback; anything else with one."""
        if isinstance(excinfo.value, _NotPassed | LocusError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the case, for the summary."""
        return self.path, None, f"case {self.name}"
