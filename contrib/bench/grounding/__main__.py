"""Judge the pairs, and print the table.

    python -m contrib.bench.grounding
    python -m contrib.bench.grounding --model llamacpp:qwen2.5-coder-1.5b --answers /tmp/answers.json

The first needs no model. The second asks one, about each claim that the rules leave open, and keeps its answers in a
file, so that a run that was interrupted goes on; `--alone` also asks it about every claim, without rules, and
`--together 5` about five of the open claims a call, with the evidence of all five.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import anyio
from attrs import field, frozen
from contrib.bench.grounding.pairs import LANGUAGES, PHENOMENA, SETS, Pair, read

from locus.core.messages import Message, Role
from locus.models import Model, ModelRequest, ModelResponse
from locus_plugin_grounding import BadVerdict, GroundingEvaluator, GroundingSettings
from locus_plugin_llamacpp.model import make
from locus_plugin_llamacpp.settings import LlamaCppSettings

Says = Callable[[Pair], Awaitable[bool]]

_DENIALS = ("negation", "double_negation")


@frozen
class Judged:
    """A pair and what was said of it."""

    pair: Pair
    grounded: bool

    @property
    def right(self) -> bool:
        return self.grounded == self.pair.grounded


@frozen
class Kept:
    """A model whose answers are kept in a file: the same question is asked once.

    Args:
        model: it.
        path: of the file.
        answers: by question.
    """

    model: Model
    path: Path
    answers: dict[str, str] = field(factory=dict)

    @classmethod
    def at(cls, model: Model, path: Path) -> Kept:
        return cls(model, path, json.loads(path.read_text("utf-8")) if path.exists() else {})

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        asked = json.dumps([self.model.name, *((m.role.value, m.text) for m in request.messages)])
        key = blake2b(asked.encode(), digest_size=16).hexdigest()
        if key not in self.answers:
            response = await self.model.complete(request)
            self.answers[key] = response.message.text
            self.path.write_text(json.dumps(self.answers), "utf-8")
        return ModelResponse(message=Message(Role.ASSISTANT, self.answers[key]))


async def by_nobody(pair: Pair) -> bool:
    """The more frequent label: no pair is grounded."""
    return False


async def by_rules(pair: Pair) -> bool:
    """What the rules say, with the default settings."""
    return not GroundingEvaluator().evaluate([pair.claim], [pair.evidence]).ungrounded_claims


def by_model(settings: GroundingSettings, model: Kept) -> Says:
    """What a model says, or rules and a model: an answer that cannot be read confirms nothing."""
    evaluator = GroundingEvaluator(settings)

    async def said(pair: Pair) -> bool:
        try:
            result = await evaluator.evaluate_with_llm(claims=[pair.claim], evidence=[pair.evidence], model=model)
        except BadVerdict:
            return False
        return not result.ungrounded_claims

    return said


async def by_rules_and_batches(pairs: Iterable[Pair], size: int, model: Kept) -> dict[Pair, bool]:
    """What the rules say, and of the claims that they leave open, what a model says of some of one language a call."""
    said: dict[Pair, bool] = {}
    left: dict[str, list[Pair]] = {}
    rules, judge = (
        GroundingEvaluator(GroundingSettings(judge="both")),
        GroundingEvaluator(GroundingSettings(judge="model")),
    )
    for pair in pairs:
        questions: list[ModelRequest] = []

        async def ask(request: ModelRequest, asked: list[ModelRequest] = questions) -> ModelResponse:
            asked.append(request)
            return ModelResponse(message=Message(Role.ASSISTANT, "no"))

        result = await rules.evaluate_with_llm(claims=[pair.claim], evidence=[pair.evidence], model=ask)
        said[pair] = not result.ungrounded_claims
        if questions:
            left.setdefault(pair.language, []).append(pair)
    for every in left.values():
        for start in range(0, len(every), size):
            some = every[start : start + size]
            claims, evidence = [pair.claim for pair in some], [pair.evidence for pair in some]
            try:
                result = await judge.evaluate_with_llm(claims=claims, evidence=evidence, model=model)
            except BadVerdict:
                continue  # it confirms nothing
            said |= {pair: pair.claim not in result.ungrounded_claims for pair in some}
    return said


HEAD = "| set | by | of | pairs | accuracy | precision | recall | denials taken for grounded |\n" + "|---" * 8 + "|"


def row(title: str, judged: Iterable[Judged]) -> str:
    """One row of the table."""
    every = list(judged)
    said = [each for each in every if each.grounded]
    both = sum(each.right for each in said)
    denials = [each for each in every if each.pair.phenomenon in _DENIALS and not each.pair.grounded]
    cells = [
        title,
        str(len(every)),
        _share(sum(each.right for each in every), len(every)),
        _share(both, len(said)),
        _share(both, sum(each.pair.grounded for each in every)),
        f"{sum(each.grounded for each in denials)} of {len(denials)}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(some: int, of: int) -> str:
    return f"{some / of:.3f}" if of else "-"


def show(name: str, title: str, judged: Sequence[Judged], *, phenomena: bool, mistakes: bool) -> None:
    """Print the rows of one judge on one set.

    Args:
        name: of the set.
        title: of the judge.
        judged: all pairs of the set.
        phenomena: also a row for each of them.
        mistakes: also the pairs that are misjudged; of the held-out set never.
    """
    print(row(f"{name} | {title} | all", judged))
    for language in LANGUAGES:
        print(row(f"{name} | {title} | {language}", (e for e in judged if e.pair.language == language)))
    print(row(f"{name} | {title} | all but en", (e for e in judged if e.pair.language != "en")))
    for phenomenon in PHENOMENA if phenomena else ():
        print(row(f"{name} | {title} | {phenomenon}", (e for e in judged if e.pair.phenomenon == phenomenon)))
    for each in judged if mistakes and title != "never" and name == "development" else ():
        if not each.right:
            print("   ", title, each.pair)


async def measure(chosen: argparse.Namespace) -> None:
    """Judge the chosen sets."""
    judges: dict[str, Says] = {"never": by_nobody, "rules": by_rules}
    if chosen.model:
        engine = make(
            chosen.model.removeprefix("llamacpp:"),
            LlamaCppSettings(threads=2, max_tokens=16 * max(1, chosen.together or 1)),
        )
        model = Kept.at(engine, chosen.answers)
        judges["rules and judge"] = by_model(GroundingSettings(judge="both"), model)
        if chosen.alone:
            judges["judge"] = by_model(GroundingSettings(judge="model"), model)
    print(HEAD)
    for name in chosen.set or SETS:
        if chosen.model and chosen.together:
            said = await by_rules_and_batches(read(name), chosen.together, model)
            judged = [Judged(pair, grounded) for pair, grounded in said.items()]
            show(name, f"rules and judge, {chosen.together} a call", judged, phenomena=False, mistakes=False)
        for title, says in judges.items():
            judged = [Judged(pair, await says(pair)) for pair in read(name)]
            show(name, title, judged, phenomena=chosen.phenomena, mistakes=chosen.mistakes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m contrib.bench.grounding", description=__doc__)
    parser.add_argument("--set", action="append", choices=SETS, help="only these; default: all")
    parser.add_argument("--model", metavar="llamacpp:NAME", help="also rules and this model")
    parser.add_argument("--answers", type=Path, default=Path("answers.json"), help="where the model's answers are kept")
    parser.add_argument("--alone", action="store_true", help="also the model without rules")
    parser.add_argument("--together", type=int, metavar="N", help="also rules and the model, N open claims a call")
    parser.add_argument("--phenomena", action="store_true", help="also a row for each phenomenon")
    parser.add_argument("--mistakes", action="store_true", help="also the development pairs that are misjudged")
    anyio.run(measure, parser.parse_args(arguments))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
