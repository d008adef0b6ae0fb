"""Judge the pairs, and print the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen
from contrib.bench.grounding.pairs import LANGUAGES, PHENOMENA, SETS, Pair, read

from locus_plugin_grounding import GroundingEvaluator

_EVALUATOR = GroundingEvaluator()


@frozen
class Judged:
    """A pair and what was said of it."""

    pair: Pair
    grounded: bool

    @property
    def right(self) -> bool:
        return self.grounded == self.pair.grounded


def by_nobody(pair: Pair) -> bool:
    """What the more frequent label is: that of a pair that is not grounded."""
    return False


def by_rules(pair: Pair) -> bool:
    """What the rules say, with the default settings."""
    return not _EVALUATOR.evaluate([pair.claim], [pair.evidence]).ungrounded_claims


def row(title: str, judged: Iterable[Judged]) -> str:
    """One row of the table."""
    every = list(judged)
    said = [each for each in every if each.grounded]
    true = [each for each in every if each.pair.grounded]
    both = sum(each.right for each in said)
    denials = [e for e in every if e.pair.phenomenon in ("negation", "double_negation") and not e.pair.grounded]
    cells = [
        title,
        str(len(every)),
        _share(sum(each.right for each in every), len(every)),
        _share(both, len(said)),
        _share(both, len(true)),
        f"{sum(each.grounded for each in denials)} of {len(denials)}",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| set | by | language | pairs | accuracy | precision | recall | denials taken for grounded |\n" + "|---" * 8 + "|"
)


def _share(some: int, of: int) -> str:
    return f"{some / of:.2f}" if of else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m contrib.bench.grounding", description=__doc__)
    parser.add_argument("--set", action="append", choices=SETS, help="only these; default: both")
    parser.add_argument("--phenomena", action="store_true", help="also a row for each phenomenon")
    parser.add_argument("--mistakes", action="store_true", help="also the development pairs that are misjudged")
    chosen = parser.parse_args(arguments)
    judges: dict[str, Callable[[Pair], bool]] = {"never": by_nobody, "rules": by_rules}
    print(HEAD)
    for name in chosen.set or SETS:
        pairs = read(name)
        for title, judge in judges.items():
            judged = [Judged(pair, judge(pair)) for pair in pairs]
            print(row(f"{name} | {title} | all", judged))
            for language in LANGUAGES:
                print(row(f"{name} | {title} | {language}", (e for e in judged if e.pair.language == language)))
            others = [e for e in judged if e.pair.language != "en"]
            print(row(f"{name} | {title} | all but en", others))
            for phenomenon in PHENOMENA if chosen.phenomena else ():
                print(row(f"{name} | {title} | {phenomenon}", (e for e in judged if e.pair.phenomenon == phenomenon)))
            for each in judged if chosen.mistakes and name == "development" else ():
                if not each.right:
                    print("   ", title, each.pair)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
