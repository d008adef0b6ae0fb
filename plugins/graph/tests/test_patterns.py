"""The coordination patterns, as programs of at most 40 lines: each comes to what its script says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio

PATTERNS = Path(__file__).resolve().parents[3] / "contrib" / "examples" / "patterns"


def build(name: str, *script: Any, **options: Any) -> Any:
    spec = importlib.util.spec_from_file_location(f"pattern_{name}", PATTERNS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build(ScriptedModel(*script, **options))


async def test_pipeline() -> None:
    result = await build("pipeline", "1. tea", "Tea is hot.", "Tea is hot!").run({"topic": "tea"})
    assert result.values == {"topic": "tea", "outline": "1. tea", "draft": "Tea is hot.", "polish": "Tea is hot!"}


async def test_fan_out() -> None:
    result = await build("fan_out", "short", after="repeat").run({"texts": ["a", "b", "c"]})
    assert (result.values["notes"], result.values["summary"]) == (["short"] * 3, "short")


async def test_router() -> None:
    result = await build("router", "Billing.", "You owe 3 EUR.").run({"question": "What do I owe?"})
    assert result.values["answer"] == "You owe 3 EUR."
    assert list(result.state.metadata["graph"]["ran"]) == ["sort", "billing"]


async def test_debate() -> None:
    result = await build("debate", "indeed", after="repeat").run({"claim": "Tea is hot."})
    assert result.values["said"] == ["for: indeed", "against: indeed"] * 2
    assert result.values["judge"] == "indeed"


async def test_orchestrator() -> None:
    result = await build("orchestrator", '{"tasks": ["boil", "pour"]}', "done", "done", "Tea is ready.").run(
        {"goal": "tea"}
    )
    assert (result.values["done"], result.values["report"]) == (["done", "done"], "Tea is ready.")


async def test_hand_off() -> None:
    result = await build("hand_off", "PASS support", "Screw it tight.").run({"question": "It wobbles."})
    assert (result.values["log"], result.values["answer"]) == (["sales", "support"], "Screw it tight.")


async def test_evaluator() -> None:
    result = await build("evaluator", "Tea.", "Too short.", "Tea is hot.", "GOOD").run({"topic": "tea"})
    assert (result.values["draft"], result.values["tries"]) == ("Tea is hot.", 2)


def test_each_is_a_program_of_at_most_40_lines() -> None:
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in PATTERNS.glob("*.py")}
    assert len(sizes) == 7
    assert max(sizes.values()) <= 40, sizes
