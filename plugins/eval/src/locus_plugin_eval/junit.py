"""A report as JUnit XML, which build servers read."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from locus_plugin_eval.report import Report
from locus_plugin_eval.trials import Trial

__all__ = ["write_junit"]

#: What XML 1.0 has no place for, not even escaped; a model may say anything.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(report: Report) -> str:
    """The report: a test case for each trial; what is missing is an error, since nothing was tested.

    Args:
        report: the report.
    """
    counts = [trial.status for trial in report.trials]
    suite = ET.Element(
        "testsuite",
        name=_clean(f"{report.suite} ({report.agent})"),
        tests=str(len(counts)),
        failures=str(counts.count("failed")),
        errors=str(counts.count("error") + counts.count("missing")),
        time=f"{sum(trial.seconds or 0.0 for trial in report.trials):.3f}",
    )
    for row in report.rows:
        for trial in row.trials:
            name = f"{trial.case}[{trial.repeat}]" if len(row.trials) > 1 else trial.case
            suite.append(_element(report.suite, name, trial))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _element(suite: str, name: str, trial: Trial) -> ET.Element:
    made = ET.Element("testcase", classname=_clean(suite), name=_clean(name), time=f"{trial.seconds or 0.0:.3f}")
    if trial.status != "passed":
        what = "failure" if trial.status == "failed" else "error"
        lines = [trial.missing] if trial.missing else [f"{each.kind}: {each.detail}" for each in trial.faults]
        fault = ET.SubElement(made, what, message=_clean(lines[0]), type=trial.status)
        fault.text = _clean("\n".join([*lines, "", f"answer: {trial.text}", f"thread: {trial.thread}"]))
    return made


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
