"""What a run without hooks and plugins leaves unloaded: it would be paid for at each start of a process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: pluggy and the specifications of hooks, cattrs and the JSON forms, and the search for plugins.
UNNEEDED = (
    "cattrs",
    "importlib_metadata",
    "locus.core.codec",
    "locus.hooks.compile",
    "locus.hooks.markers",
    "locus.hooks.specs",
    "locus.plugins.activation",
    "locus.plugins.discovery",
    "locus.plugins.providers",
    "locus.plugins.settings",
    "pluggy",
)

AGENT = """
import json, sys
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


def loaded_by(options: str) -> set[str]:
    program = AGENT.replace("{options}", options)
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
