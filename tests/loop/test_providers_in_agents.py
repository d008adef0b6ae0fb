"""What plugins provide to an agent by name: models, checkpointers, names under fixed import paths."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from tests.loop.hook_kit import Crash, plugins
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, confirm, kinds, results
from tests.unit.toy_plugins import Shelf, shelf

from locus import Agent, AgentState, CheckpointEvent, Event, Hook, Message, ModelRequest, Role, ThinkEvent, tool
from locus.config import load_config
from locus.core.errors import (
    CheckpointTooNew,
    ConfigError,
    NothingToResume,
    PluginError,
    PluginLoadError,
    SettingsError,
    UnknownName,
)
from locus.journal import MemoryStore
from locus.plugin import RunContext
from locus.plugins.discovery import Catalogue
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call
from locus_testkit.discovery import TemporaryPlugins

__all__ = ["shelf"]

pytestmark = pytest.mark.anyio

PROVIDER = """
import json
from attrs import frozen
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel

@frozen
class Settings:
    greeting: str = "hello"

def model(rest, settings):
    return ScriptedModel(f"{settings.greeting} from {rest}", name=f"toy:{rest}")

SAVED = {}

def checkpointer(rest, settings):
    store = SAVED.setdefault(rest, {})
    def save(thread_id, data): store[thread_id] = json.dumps(data)
    async def load(thread_id): return json.loads(store[thread_id]) if thread_id in store else None
    return SnapshotAdapter(save, load)

def nonsense(rest, settings):
    return 7

def fails(rest, settings):
    raise LookupError(f"no {rest} today")
"""


@pytest.fixture
def toy(plugin_catalogue: TemporaryPlugins) -> TemporaryPlugins:
    provides = {"model": "model", "checkpointer": "checkpointer"}
    plugin_catalogue.write("toy", PROVIDER, provides=provides, settings="Settings")
    return plugin_catalogue


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    bodies.clear()


# -- models -------------------------------------------------------------------------------------------


async def test_a_model_is_named_by_its_provider_and_the_rest_is_the_providers(toy: TemporaryPlugins) -> None:
    agent = Agent("toy:large", catalogue=toy.catalogue)
    result = await agent.run("x")
    assert result.message == "hello from large"
    assert agent.runtime.model.name == "toy:large"
    # Providing something is no reason to be among the plugins whose hooks run.
    assert plugins(result).plugins == ()


async def test_a_providers_settings_come_from_the_file_and_from_the_program(
    toy: TemporaryPlugins, tmp_path: Path
) -> None:
    path = tmp_path / "locus.toml"
    path.write_text('[plugins.toy]\ngreeting = "salut"\n[agent]\nmodel = "toy:a file"\n')
    config = load_config(path, environ={})
    agent: Agent[None, str] = Agent(config=config, catalogue=toy.catalogue)
    assert (await agent.run("x")).message == "salut from a file"
    agent = Agent("toy:code", config=config, catalogue=toy.catalogue, toy={"greeting": "hi"})
    assert (await agent.run("x")).message == "hi from code"


async def test_a_manifest_that_is_handed_in_provides_what_it_provides(plugin_catalogue: TemporaryPlugins) -> None:
    provides = {"model": "model", "checkpointer": "checkpointer"}
    manifest = plugin_catalogue.write("toy", PROVIDER, provides=provides, settings="Settings")

    class Asks(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            answer = await run.call_model(
                ModelRequest(messages=(Message(Role.USER, "Well?"),)), model="toy:judge", purpose="judge"
            )
            run.report("asks", answer.message.text)

    # Nothing is looked for on the machine: what is asked for is there.
    agent: Agent[None, str] = Agent("toy:large", plugins=[manifest], checkpointer="toy:handed in", hooks=[Asks()])
    result = await agent.run("x", thread_id="t")
    assert (result.message, result.reports["asks"]) == ("hello from large", "hello from judge")
    nothing = Catalogue.only()
    agent = Agent("toy:large", plugins=[manifest], catalogue=nothing, toy={"greeting": "hi"})
    assert (await agent.run("x")).message == "hi from large"
    module = manifest.provides["model"].partition(":")[0]
    other = evolve(manifest, summary="It hides an installed one.", provides={"model": f"{module}:fails"})
    with pytest.raises(LookupError, match="no large today"):
        Agent("toy:large", plugins=[other], catalogue=plugin_catalogue.catalogue)


async def test_an_agent_without_a_model_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="no model: pass model='provider:model'"):
        Agent()


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        ("tou:large", UnknownName, "did you mean 'toy'"),
        ("large", ConfigError, "names no plugin"),
        (":large", ConfigError, "names no plugin"),
        (7, ConfigError, "model must have .*, got 7"),
        (object(), ConfigError, "async complete"),
    ],
)
async def test_a_model_that_nobody_provides_is_refused_when_the_agent_is_built(
    toy: TemporaryPlugins, model: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Agent(model, catalogue=toy.catalogue)


async def test_a_provider_that_fails_breaks_the_build_and_is_named(plugin_catalogue: TemporaryPlugins) -> None:
    plugin_catalogue.write("bad", PROVIDER, provides={"model": "fails", "checkpointer": "nonsense"})
    plugin_catalogue.write("odd", PROVIDER, provides={"model": "nonsense"})
    plugin_catalogue.write("gone", PROVIDER, provides={"model": "not_there"})
    with pytest.raises(LookupError, match="no large today") as caught:
        Agent("bad:large", catalogue=plugin_catalogue.catalogue)
    assert "while plugin 'bad' made the model 'bad:large'" in caught.value.__notes__
    with pytest.raises(PluginError, match="'odd': its factory must make a Model, got 7"):
        Agent("odd:large", catalogue=plugin_catalogue.catalogue)
    with pytest.raises(PluginLoadError, match="gone"):
        Agent("gone:large", catalogue=plugin_catalogue.catalogue)
    with pytest.raises(ConfigError, match="checkpointer must have the methods of JournalStore, got 7"):
        Agent(ScriptedModel(), checkpointer="bad:x", catalogue=plugin_catalogue.catalogue)
    with pytest.raises(UnknownName, match="provides no checkpointer"):
        Agent(ScriptedModel(), checkpointer="odd:x", catalogue=plugin_catalogue.catalogue)


async def test_wrong_settings_of_a_provider_are_named_with_their_place(toy: TemporaryPlugins, tmp_path: Path) -> None:
    path = tmp_path / "locus.toml"
    path.write_text('[plugins.toy]\ngreting = "salut"\n')
    with pytest.raises(SettingsError, match="greting is not a setting; did you mean 'greeting'"):
        Agent("toy:x", config=load_config(path, environ={}), catalogue=toy.catalogue)


# -- checkpointers ------------------------------------------------------------------------------------


async def test_a_checkpointer_by_name_keeps_threads_between_agents(toy: TemporaryPlugins) -> None:
    script = ScriptedModel(call("confirm", what="pay"), "done", "again")

    def agent() -> Agent[Any, Any]:
        return Agent(script, tools=[confirm], checkpointer="toy:shop", catalogue=toy.catalogue)

    asked = await agent().run("x", thread_id="t")
    assert asked.stop_reason == "Interrupted"
    result = await agent().resume("t", "yes")
    assert (result.message, results(result), result.run_id) == ("done", ["pay: yes"], asked.run_id)
    assert (await agent().run("y", thread_id="t")).message == "again"
    with pytest.raises(NothingToResume):
        await Agent(script, tools=[confirm], checkpointer="toy:elsewhere", catalogue=toy.catalogue).resume("t")


async def test_what_is_not_a_store_is_refused_and_says_how_to_make_one() -> None:
    with pytest.raises(ConfigError, match="SnapshotAdapter"):
        Agent(ScriptedModel(), checkpointer={})  # type: ignore[arg-type]


# -- a backend that only saves and loads --------------------------------------------------------------


class Disk:
    """Keeps JSON text under thread ids, as a bucket or a table does; survives the store that writes to it."""

    def __init__(self, saved: dict[str, str] | None = None) -> None:
        self.saved = {} if saved is None else saved
        self.writes = 0

    def store(self) -> SnapshotAdapter:
        """A store as a new process makes it: it remembers nothing."""
        return SnapshotAdapter(self.save, self.load)

    async def save(self, thread_id: str, data: dict[str, Any]) -> None:
        self.writes += 1
        self.saved[thread_id] = json.dumps(data)

    def load(self, thread_id: str) -> dict[str, Any] | None:
        text = self.saved.get(thread_id)
        return None if text is None else json.loads(text)

    def state(self, thread_id: str) -> AgentState:
        return AgentState.from_checkpoint(json.loads(self.saved[thread_id]))


def script() -> ScriptedModel:
    """A turn with a plain call and one that asks, a turn that goes on, and the answer."""
    turns: list[Any] = [[call("add", a=1), call("confirm", what="pay")], call("add", a=2), "done"]
    return ScriptedModel(script=lambda request: turns, after="cycle")


async def test_a_run_is_resumed_from_json_by_a_process_that_knows_nothing_else() -> None:
    disk = Disk()
    asked = await Agent(script(), tools=[add, confirm], checkpointer=disk.store()).run("x", thread_id="t")
    assert asked.stop_reason == "Interrupted"
    bodies.clear()
    fresh = Agent(script(), tools=[add, confirm], checkpointer=Disk(dict(disk.saved)).store())
    result = await fresh.resume("t", "yes")
    assert (result.message, results(result)) == ("done", ["2", "pay: yes", "3"])
    assert bodies == {"confirm": 1, "add": 1}
    assert (result.run_id, result.usage.total_tokens) == (asked.run_id, 45)
    assert_valid_history(result.state.messages)


async def test_every_question_can_be_answered_in_another_process() -> None:
    disk = Disk()
    turns: list[Any] = [[call("confirm", what="pay"), call("confirm", what="ship")], "done"]
    model = ScriptedModel(script=lambda request: turns)

    def agent() -> Agent[Any, Any]:
        return Agent(model, tools=[confirm], checkpointer=Disk(disk.saved).store())

    asked = await agent().run("x", thread_id="t")
    first, second = sorted(q.interrupt_id for q in asked.interrupts)
    half = await agent().resume("t", {first: "yes"})
    assert [q.interrupt_id for q in half.interrupts] == [second]
    result = await agent().resume("t", "no")
    assert results(result) == ["pay: yes", "ship: no"]


class DiesAt(Hook):
    """The process dies at the n-th event."""

    def __init__(self, n: int) -> None:
        self.left = n

    def on_event(self, event: Event) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


async def test_wherever_the_process_dies_the_run_continues_to_the_same_end() -> None:
    turns: list[Any] = [[call("add", a=1), call("add", a=2)], call("add", a=3), "done"]

    def agent(disk: Disk, *hooks: Hook) -> Agent[Any, Any]:
        model = ScriptedModel(script=lambda request: turns)
        return Agent(model, tools=[add], hooks=hooks, checkpointer=disk.store(), tool_execution="sequential")

    recorder = Recorder()
    whole = (await agent(Disk(), recorder).run("x", thread_id="t")).state
    for n in range(1, len(recorder.events) + 1):
        disk = Disk()
        with pytest.raises(Crash):
            await agent(disk, DiesAt(n)).run("x", thread_id="t")
        if "t" not in disk.saved:
            continue  # it had not begun
        after = Agent(
            ScriptedModel(script=lambda request: turns),
            tools=[add],
            checkpointer=Disk(dict(disk.saved)).store(),
            tool_execution="sequential",
        )
        try:
            state = (await after.resume("t")).state
        except NothingToResume:
            state = disk.state("t")  # it had ended; only the news of it was lost
        assert len(state.messages) == len(whole.messages), kinds(recorder.events)[n - 1]
        assert [m.role for m in state.messages] == [m.role for m in whole.messages]
        assert state.total_tokens_used == whole.total_tokens_used
        assert_valid_history(state.messages)


async def test_what_is_saved_is_a_checkpoint_that_anybody_can_read() -> None:
    disk = Disk()
    result = await Agent(script(), tools=[add, confirm], checkpointer=disk.store()).run("x", thread_id="t")
    assert disk.state("t").messages == result.state.messages
    assert "journal" in json.loads(disk.saved["t"])


async def test_a_bare_checkpoint_is_a_conversation_that_continues() -> None:
    state = AgentState(messages=(Message(Role.USER, "one"), Message(Role.ASSISTANT, "two")))
    disk = Disk({"t": json.dumps(state.to_checkpoint())})
    model = ScriptedModel("four")
    result = await Agent(model, checkpointer=disk.store()).run("three", thread_id="t")
    assert [m.text for m in result.state.messages] == ["one", "two", "three", "four"]
    with pytest.raises(NothingToResume):
        await Agent(model, checkpointer=disk.store()).resume("t")


async def test_a_checkpoint_of_a_newer_version_is_refused_and_left_alone() -> None:
    form = AgentState(messages=(Message(Role.USER, "one"),)).to_checkpoint()
    disk = Disk({"t": json.dumps({**form, "schema": 999})})
    before = dict(disk.saved)
    with pytest.raises(CheckpointTooNew, match="999"):
        await Agent(ScriptedModel("hi"), checkpointer=disk.store()).run("x", thread_id="t")
    assert disk.saved == before


async def test_the_newest_state_is_saved_at_every_transition_before_anybody_hears_of_it() -> None:
    disk = Disk()
    seen: list[tuple[str, bool]] = []

    class Look(Hook):
        def on_checkpoint(self, event: CheckpointEvent, run: Any) -> None:
            seen.append((event.node, disk.state("t") == run.state))

    model = ScriptedModel(call("add", a=1), "done")
    await Agent(model, tools=[add], hooks=[Look()], checkpointer=disk.store()).run("x", thread_id="t")
    assert seen == [(node, True) for node in ("start", "think", "execute", "think", "terminate")]


PROGRAM = """
import json, os, pathlib, sys
import anyio
from locus import Agent, tool
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call

place, mode, backend = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def save(thread_id, data):
    (place / "new.json").write_text(json.dumps(data))
    os.replace(place / "new.json", place / f"{thread_id}.json")

def load(thread_id):
    path = place / f"{thread_id}.json"
    return json.loads(path.read_text()) if path.exists() else None

@tool(effect="once")
async def pay(amount: int) -> str:
    "Pays."
    with (place / "paid.txt").open("a") as f:
        f.write(f"{amount}\\n")
    return f"paid {amount}"

@tool(effect="pure")
async def die() -> str:
    "Kills the process, the first time."
    if mode == "dies":
        os._exit(9)
    return "survived"

turns = [[call("pay", amount=7), call("die")], "done"]
agent = Agent(
    ScriptedModel(script=lambda request: turns),
    tools=[pay, die],
    checkpointer=SnapshotAdapter(save, load),
    tool_execution="sequential",
)

async def main():
    run = agent.run("x", thread_id="t") if mode == "dies" else agent.resume("t")
    result = await run
    print(result.message, [r.content for m in result.state.messages for r in m.tool_results])

anyio.run(main, backend=backend)
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_process_that_is_killed_in_a_tool_leaves_a_run_that_another_one_finishes(
    tmp_path: Path, backend: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def start(mode: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), str(tmp_path), mode, backend]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert start("dies").returncode == 9
    finished = start("resumes")
    assert finished.stderr == ""
    assert finished.stdout.strip() == "done ['paid 7', 'survived']"
    assert (tmp_path / "paid.txt").read_text() == "7\n"


# -- names under fixed paths --------------------------------------------------------------------------

COMPAT_PATHS = ("locus.hooks.builtin", "locus.memory")


@pytest.fixture
def _forgotten_packages() -> Iterator[None]:
    """Whatever a test imports through a compat path is forgotten."""
    yield
    for name in [n for n in sys.modules if n.startswith(tuple(f"{package}." for package in COMPAT_PATHS))]:
        del sys.modules[name]
    for name in COMPAT_PATHS:
        package = sys.modules.pop(name, None)
        parent, _, last = name.rpartition(".")
        if package is not None and getattr(sys.modules[parent], last, None) is package:
            delattr(sys.modules[parent], last)


@pytest.mark.usefixtures("_forgotten_packages")
async def test_a_hook_and_a_backend_imported_from_their_fixed_paths_work_in_an_agent(shelf: Shelf) -> None:
    shelf.module(
        "toy_parts",
        """
        from locus import Hook
        from locus.journal import MemoryStore

        class CountingHook(Hook):
            heard = 0
            def on_event(self, event): self.heard += 1

        class ToyBackend(MemoryStore):
            pass
        """,
    )
    compat_paths = {
        "locus.hooks.builtin:CountingHook": "toy_parts:CountingHook",
        "locus.memory.backends:ToyBackend": "toy_parts:ToyBackend",
    }
    shelf.plugin("toy", compat_paths=repr(compat_paths))
    hook = importlib.import_module("locus.hooks.builtin").CountingHook()
    store = importlib.import_module("locus.memory.backends").ToyBackend()
    assert isinstance(store, MemoryStore)
    result = await Agent(ScriptedModel("hi"), hooks=[hook], checkpointer=store).run("x", thread_id="t")
    assert result.message == "hi"
    assert hook.heard > 0
    assert [info.thread_id for info in await store.threads()] == ["t"]
    with pytest.raises(ImportError, match=r"'CountHook'.*the nearest is .*CountingHook of plugin 'toy'"):
        from_compat_path("locus.hooks.builtin", "CountHook")


def from_compat_path(package: str, name: str) -> Any:
    space: dict[str, Any] = {}
    exec(f"from {package} import {name}", space)
    return space[name]


async def test_a_started_call_that_may_happen_once_is_not_started_by_the_next_process() -> None:
    disk = Disk()
    dies = True

    @tool
    async def spend(amount: int) -> str:
        """Spends."""
        bodies["spend"] += 1
        if dies:
            raise Crash
        return "spent"

    def agent(disk: Disk) -> Agent[Any, Any]:
        model = ScriptedModel(script=lambda request: [call("spend", amount=1), "done"])
        return Agent(model, tools=[spend], checkpointer=disk.store())

    with pytest.raises(Crash):
        await agent(disk).run("x", thread_id="t")
    dies = False
    result = await agent(Disk(dict(disk.saved))).resume("t")
    assert bodies["spend"] == 1
    assert results(result)[0].startswith("Error: outcome unknown")
