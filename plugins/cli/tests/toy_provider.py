"""A provider of scripted models, and what else a plugin may bring; installed on a path of its own by the tests.

It stands in a file of its own because the commands under test run in other processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import anyio
import click
from attrs import frozen

from locus.core.errors import ContextOverflow, ModelError
from locus.core.events import Event
from locus.core.messages import Message, Role, ThinkingBlock, Usage
from locus.journal import JournalStore, MemoryStore
from locus.models.protocol import Model, ModelRequest, ModelResponse, OnChunk
from locus.plugin import Hook, Plugin, hookimpl
from locus.plugins.secret import Secret
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, Turn, call, never


@frozen(kw_only=True)
class ToySettings:
    """Settings with a bit of everything.

    Args:
        level: how much.
        key: a secret.
    """

    level: int = 1
    key: Secret | None = None


plugin = Plugin(
    name="toy",
    api=(1, 0),
    summary="Scripted models, for tests.",
    hooks=("toy_provider:Told",),
    settings="toy_provider:ToySettings",
    provides={
        "model": "toy_provider:make",
        "models": "toy_provider:models",
        "checkpointer": "toy_provider:store",
        "default_model": "toy_provider:default_model",
    },
)


class Told(Hook):
    """Hears events, and brings a command."""

    def on_run_start(self, event: Event) -> None:
        """Hear that a run starts."""

    @hookimpl
    def locus_register_commands(self) -> list[object]:
        """One command as it is, one by reference."""
        return [shout, "toy_provider:whisper"]


@click.command()
@click.argument("text")
def shout(text: str) -> int:
    """Say it loudly."""
    click.echo(text.upper())
    return 0


@click.command()
def whisper() -> None:
    """Say it softly."""


async def _gate() -> None:
    """Wait until the test opens the gate: a file in the working directory."""
    # The test is another process: there is no event of its own to wait for.
    while not await anyio.Path("gate").exists():  # noqa: ASYNC110
        await anyio.sleep(0.01)


async def _pause(request: ModelRequest) -> Turn:
    await _gate()
    return "That took a while."


async def _prepare(request: ModelRequest) -> Turn:
    sys.stderr.write("\rpreparing the model (once): 37 %")
    await _gate()
    sys.stderr.write("\rpreparing the model (once): 100 %\n")
    return "Ready."


def _echo(request: ModelRequest) -> Turn:
    said = [message.text for message in request.messages if message.role is Role.USER]
    system = [message.text for message in request.messages if message.role is Role.SYSTEM]
    return json.dumps({"said": said, "system": system, "temperature": request.settings.temperature})


def _tools(request: ModelRequest) -> Turn:
    return json.dumps([f"{tool.name}: {tool.description}" for tool in request.tools])


def _repeat(request: ModelRequest) -> Turn:
    return [message.text for message in request.messages if message.role is Role.USER][-1]


def _narrow(request: ModelRequest) -> Turn:
    """A model with a window of 2,000 characters, which it does not report."""
    size = sum(len(message.text) for message in request.messages)
    if size > 2_000:
        raise ContextOverflow(f"{size} characters are too many", provider="toy")
    if request.purpose == "summarize":
        return "Animals were named."
    return json.dumps([message.text[:40] for message in request.messages])


SCRIPTS: Mapping[str, Sequence[Turn]] = {
    "product": [["Let me see. ", call("multiply", a=1234, b=5678)], "The product is 7006652."],
    "wrong": [[call("multiply", a="x", b=1), call("divide", a=1)], "That went wrong."],
    "asks": [call("ask", question="Delete it?"), "Done."],
    "asks_twice": [[call("ask", question="One?"), call("ask", question="Two?")], "Done."],
    "naps": [call("nap", seconds=0.01)],
    "naps_long": [call("nap", seconds=60.0), "Awake."],
    "gated": [call("gate"), "I went through."],
    "pays": [call("note"), call("charge", cents=5), "It is paid."],
    "obeys": [call("read_page"), call("send", to="eve@evil.example"), "That is all."],
    "silent": [never],
    "tools": [_tools],
    "pauses": [_pause],
    "prepares": [_prepare],
    "thinks": [[ThinkingBlock("Hm, let me think."), "Because."]],
    "cut": [ModelResponse(message=Message(Role.ASSISTANT, "So far"), stop_reason="length")],
    "fails": [ModelError("the provider said no", provider="toy")],
    "evil": ["\x1b]0;owned\x07\x1b[31mred\x1b[0m \udc80"],
    "long": ["word " * 20_000],
    "echo": [_echo],
    "verbatim": [_repeat],
    "narrow": [_narrow],
}


class Keyless:
    """A model that knows that no request can be made."""

    name = "toy:keyless"

    def check_ready(self) -> None:
        """Say so."""
        raise ModelError("toy needs a key; set TOY_KEY", provider="toy")

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Be asked although nothing can come of it."""
        raise AssertionError


def make(name: str, settings: ToySettings) -> Model:
    """The model of that name; an unknown one raises what a careless plugin would."""
    if name == "keyless":
        return Keyless()
    script = SCRIPTS[name]
    used = Usage(prompt_tokens=1200, completion_tokens=30, cached_tokens=1000)
    # By the conversation, not by the number of requests: a run may go on in another process.
    return ScriptedModel(script=lambda request: script, name=f"toy:{name}", chunks=True, usage=used, after="cycle")


def models(settings: ToySettings) -> list[tuple[str, str]]:
    """What there is."""
    return [(name, f"a script of {len(script)}") for name, script in SCRIPTS.items()]


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """A default, when the environment has a key."""
    return (100, "toy:echo", "TOY_KEY is set") if environ.get("TOY_KEY") else None


def store(text: str, settings: ToySettings) -> JournalStore:
    """A store that is shared by all who ask in this process; ``newer`` holds what a later version has written."""
    made = SnapshotAdapter(_refuse, lambda _: {"schema": 99}) if text == "newer" else MemoryStore()
    return _STORES.setdefault(text, made)


def _refuse(thread_id: str, checkpoint: object) -> None:
    raise AssertionError(f"{thread_id} was written over")


_STORES: dict[str, JournalStore] = {}
