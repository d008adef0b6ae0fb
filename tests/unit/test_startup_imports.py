"""What a run without hooks and plugins leaves unloaded: it would be paid for at each start of a process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: pluggy and the specifications of hooks, cattrs and the JSON forms, and the search for plugins.
UNNEEDED = (
    "cattrs",
    "docstring_parser",
    "importlib_metadata",
    "locus.config",
    "locus.core.codec",
    "locus.hooks.compile",
    "locus.hooks.markers",
    "locus.hooks.specs",
    "locus.journal.history",
    "locus.journal.snapshots",
    "locus.models.output",
    "locus.plugins.activation",
    "locus.plugins.discovery",
    "locus.plugins.providers",
    "locus.plugins.settings",
    "locus.tools.dispatch",
    "locus.threads",
    "locus.tools.session_tools",
    "msgspec",
    "pluggy",
)

AGENT = """
import json, linecache, sys
from locus import Agent, Hook
from locus.core.messages import Message, Role, TextBlock
from locus.models import ModelResponse

class Model:
    name = "toy:model"
    async def complete(self, request, on_chunk=None):
        return ModelResponse(message=Message(Role.ASSISTANT, (TextBlock("hi"),)))

class Silent(Hook):
    def on_think(self, event): ...

assert Agent(model=Model(){options}).run_sync("hello").text == "hi"
print(json.dumps(sorted(sys.modules)))
"""


def loaded_by(options: str, shown: str = "sys.modules") -> set[str]:
    program = AGENT.replace("{options}", options).replace("sys.modules", shown)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("options", ["", ", hooks=[], plugins=[]"], ids=["nothing given", "empty lists given"])
def test_an_agent_without_hooks_and_plugins_does_not_load_their_machinery(options: str) -> None:
    assert loaded_by(options).isdisjoint(UNNEEDED)


def test_an_agent_with_a_hook_loads_the_hook_compiler_and_searches_for_no_plugin() -> None:
    loaded = loaded_by(", hooks=[Silent()]")

    assert {"pluggy", "locus.hooks.compile", "locus.hooks.specs"} <= loaded
    assert not any(name.startswith("importlib_metadata") for name in loaded)


def test_attrs_describes_few_of_the_classes_that_an_agent_loads() -> None:
    """What attrs writes of a class it keeps for tracebacks: the others have what `locus.core.frozen` wrote, or less."""
    written = {name for name in loaded_by("", "linecache.cache") if name.startswith("<attrs generated methods locus.")}

    assert 0 < len(written) <= 24, written
