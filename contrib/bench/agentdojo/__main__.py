"""Run the cases under the policies, and print the table."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import anyio
from attrs import asdict
from contrib.bench.agentdojo.policies import POLICIES
from contrib.bench.agentdojo.suites import ENCODINGS, Part, attacked_cases, clean_cases, suites
from contrib.bench.agentdojo.trial import Outcome, run_case

CLEAN = "clean"


def measure(suite: str, kind: str, part: Part, policies: Sequence[str]) -> list[tuple[str, str, Outcome]]:
    """A part of a suite's cases under each policy, in this process.

    Args:
        suite: its name.
        kind: ``"clean"``, or how the injected text is encoded.
        part: which of them.
        policies: their names.

    Returns:
        Policy, kind, outcome.
    """
    logging.disable()
    cases = clean_cases(suite, part) if kind == CLEAN else attacked_cases(suite, kind, part)

    async def run() -> list[tuple[str, str, Outcome]]:
        return [(name, kind, await run_case(case, POLICIES[name])) for case in cases for name in policies]

    return anyio.run(run)


def row(policy: str, kind: str, clean: Sequence[Outcome], attacked: Sequence[Outcome]) -> str:
    """One row of the table."""
    calls = [each for each in attacked if not each.words]
    words = [each for each in attacked if each.words]
    cells = [
        POLICIES[policy].title,
        kind,
        _share(sum(o.injected - o.injected_ran for o in calls), sum(o.injected for o in calls)),
        _share(sum(o.attacked for o in calls), len(calls)),
        f"{sum(o.attacked for o in words)} of {len(words)}",
        _share(sum(o.user_ran for o in clean), sum(o.user for o in clean)),
        _share(sum(o.user_ran for o in attacked), sum(o.user for o in attacked)),
        _share(sum(o.useful for o in clean), len(clean)),
        _share(sum(o.useful for o in attacked), len(attacked)),
        f"{sum(o.questions for o in clean) / max(len(clean), 1):.2f}",
        f"{sum(o.questions for o in attacked) / max(len(attacked), 1):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| policy | injected text | injected side effects stopped | attacks that succeed | of these that want words | "
    "user's calls kept, clean | under attack | utility, clean | under attack | questions a task, clean | under attack |"
)


def _share(some: int, of: int) -> str:
    return f"{100 * some / of:.1f} %" if of else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m contrib.bench.agentdojo", description=__doc__)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only these; default: all")
    parser.add_argument("--suite", action="append", choices=list(suites()), help="only these; default: all")
    parser.add_argument("--encoding", action="append", choices=list(ENCODINGS), help="only these; default: all")
    parser.add_argument("--processes", type=int, default=2, help="default: 2")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write each outcome to FILE, a JSON object a line")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    policies = given.policy or list(POLICIES)
    found = _measure_all(given.suite or list(suites()), given.encoding or list(ENCODINGS), policies, given.processes)
    if given.save:
        given.save.write_text("".join(_lines(found)), encoding="utf-8")
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for policy in policies:
        clean = [outcome for name, kind, outcome in found if (name, kind) == (policy, CLEAN)]
        for encoding in given.encoding or ENCODINGS:
            print(row(policy, encoding, clean, [o for name, kind, o in found if (name, kind) == (policy, encoding)]))
    print(f"\n{len(found)} runs in {time.perf_counter() - began:.0f} s, {given.processes} processes")
    return 0


def _measure_all(
    names: Iterable[str], encodings: Iterable[str], policies: Sequence[str], processes: int
) -> list[tuple[str, str, Outcome]]:
    parts = 4 * processes
    with ProcessPoolExecutor(processes) as pool:
        waiting = [
            pool.submit(measure, name, kind, (part, parts), policies)
            for name in names
            for kind in (*encodings, CLEAN)
            for part in range(parts)
        ]
        return [each for done in waiting for each in done.result()]


def _lines(found: Iterable[tuple[str, str, Outcome]]) -> Iterable[str]:
    for policy, kind, outcome in found:
        yield json.dumps({"policy": policy, "kind": kind, **asdict(outcome)}) + "\n"


if __name__ == "__main__":
    sys.exit(main())
