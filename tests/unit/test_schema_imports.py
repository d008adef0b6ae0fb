"""What a program does not use of the schema libraries, it does not wait for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WITHOUT_TOOLS = """
from locus import Agent
from locus.core.messages import Message, Role, TextBlock
from locus.models import ModelResponse
class Model:
    name = "toy:model"
    async def complete(self, request, on_chunk=None):
        return ModelResponse(message=Message(Role.ASSISTANT, (TextBlock("hi"),)))
assert Agent(model=Model()).run_sync("hi").text == "hi"
"""

PLAIN = '''
from locus import tool
@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers, and give their sum."""
    return a + b
assert add.bind({"a": 1}).call() == 3
'''

SECTIONS = PLAIN.replace("sum.", "sum.\n\n    Args:\n        a: the first one.\n    ")


@pytest.mark.parametrize(
    ("program", "loaded"),
    [(WITHOUT_TOOLS, []), (PLAIN, ["msgspec"]), (SECTIONS, ["docstring_parser", "msgspec"])],
    ids=["a run without tools", "a tool", "a tool whose docstring has sections"],
)
def test_a_library_is_loaded_when_something_needs_it(program: str, loaded: list[str]) -> None:
    ending = "import sys, json; print(json.dumps(sorted({'msgspec', 'docstring_parser'} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", program + ending], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == loaded
