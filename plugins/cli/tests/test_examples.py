"""The example tools of the checkout do what their worked examples tell the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from locus_kit.loading import load_tools

ARITHMETIC = Path(__file__).resolve().parents[3] / "contrib" / "examples" / "arithmetic.py"


@pytest.mark.parametrize("tool", load_tools(str(ARITHMETIC)), ids=lambda tool: tool.name)
def test_worked_examples_are_true(tool: Any) -> None:
    assert tool.examples
    for example in tool.examples:
        assert str(tool(**example.arguments)) == example.result
        assert example.result in example.answer


def test_whole_numbers_have_no_decimal_point() -> None:
    add, multiply, divide = load_tools(str(ARITHMETIC))

    assert multiply(1234, 5678) == 7006652
    assert str(add(1.5, 1.5)) == "3"
    assert str(divide(1, 8)) == "0.125"
