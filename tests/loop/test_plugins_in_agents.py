"""From a plugin's name to its hooks in a run: keywords, lists, files, the environment; and plugins that are broken."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.loop.hook_kit import failures, plugins
from tests.loop.kit import Recorder, add, of, results
from tests.unit.toy_plugins import Shelf, shelf

import locus_plugin_timetravel as timetravel
from locus import Agent, AgentResult, Hook, HookFailedEvent, RunStartEvent, ThinkEvent, ToolContext, tool
from locus.config import load_config
from locus.core.errors import (
    ConfigError,
    HookSpecError,
    PluginIncompatible,
    PluginLoadError,
    SettingsError,
    UnknownName,
)
from locus.core.events import event_from_json, event_to_json
from locus.journal import MemoryStore
from locus.plugin import Plugin
from locus_testkit import ScriptedModel, call
from locus_testkit.discovery import Discovery, DiscoveryRefused

__all__ = ["shelf"]

pytestmark = pytest.mark.anyio

SETTINGS = """
from attrs import field, frozen, validators
from locus.plugins.secret import Secret

@frozen
class Settings:
    word: str = "seen"
    times: int = field(default=1, validator=validators.ge(1))
    key: Secret | None = None
"""

HOOKS = """
from locus.plugin import Hook

class Toy(Hook):
    def __init__(self, settings):
        self.settings = settings

    def on_terminate(self, event, run):
        run.report("toy", " ".join([self.settings.word] * self.settings.times))
"""


@pytest.fixture
def toys(shelf: Shelf) -> Shelf:
    """One plugin with settings, a keyword and a hook class."""
    shelf.module("toy_toy_settings", SETTINGS)
    shelf.plugin(
        "toy",
        version="1.2",
        hooks=HOOKS,
        references="('toy_toy_hooks:Toy',)",
        settings="'toy_toy_settings:Settings'",
        keywords="{'toy_word': 'word', 'toy_times': 'times'}",
    )
    return shelf


def add_broken(shelf: Shelf, name: str = "broken", **fields: str) -> None:
    shelf.plugin(name, hooks="import a_module_that_is_not_there", **fields)


def settings(**given: Any) -> Any:
    """The toy's own settings class, imported when the test runs."""
    return importlib.import_module("toy_toy_settings").Settings(**given)


async def run(agent: Agent[Any, Any]) -> AgentResult[Any]:
    return await agent.run("x")


# -- asking for a plugin ------------------------------------------------------------------------------


async def test_a_name_as_a_keyword_switches_a_plugin_on(toys: Shelf) -> None:
    result = await run(Agent(ScriptedModel("hi"), toy=True))
    assert result.reports["toy"] == "seen"
    seen = plugins(result).of("toy")
    assert seen is not None
    assert (seen.version, seen.status, seen.kind) == ("1.2", "active", "plugin")


@pytest.mark.parametrize(
    "given",
    [
        lambda: {"toy": {"word": "done", "times": 2}},
        lambda: {"toy": settings(word="done", times=2)},
        lambda: {"toy_word": "done", "toy_times": 2},
        lambda: {"toy": {"word": "done"}, "toy_times": 2},
        lambda: {"toy": settings(word="done"), "toy_times": 2},
        lambda: {"toy": True, "toy_word": "done", "toy_times": 2},
    ],
    ids=["a dict", "an instance", "keywords", "a dict and a keyword", "an instance and a keyword", "all apart"],
)
async def test_settings_come_in_every_form_that_a_program_may_like(toys: Shelf, given: Any) -> None:
    result = await run(Agent(ScriptedModel("hi"), **given()))
    assert result.reports["toy"] == "done done"


async def test_a_list_of_names_and_manifests(toys: Shelf) -> None:
    toys.module(
        "toy_inline", "from locus.plugin import hookimpl\n@hookimpl\ndef locus_on_think(run): run.report('inline', 1)"
    )
    inline = Plugin(name="inline", api=(1, 0), summary="In code.", hooks=("toy_inline",))
    result = await run(Agent(ScriptedModel("hi"), plugins=["toy", inline]))
    assert (result.reports["toy"], result.reports["inline"]) == ("seen", 1)
    assert [p.name for p in plugins(result).plugins] == ["toy", "inline"]
    assert dict(plugins(result).versions) == {"toy": "1.2", "inline": ""}


async def test_a_plugin_can_be_switched_off_again(toys: Shelf) -> None:
    for agent in (
        Agent(ScriptedModel("hi"), plugins=["toy", "no:toy"]),
        Agent(ScriptedModel("hi"), toy=False),
    ):
        result = await run(agent)
        assert "toy" not in result.reports
        seen = plugins(result).of("toy")
        assert seen is None or seen.status == "disabled"


async def test_every_run_says_which_plugins_it_ran_with(toys: Shelf) -> None:
    recorder = Recorder()
    agent = Agent(ScriptedModel("hi", after="repeat"), toy=True, hooks=[recorder])
    await run(agent)
    [start] = of(recorder.events, RunStartEvent)
    assert dict(start.plugins) == {"toy": "1.2"}
    assert event_from_json(event_to_json(start)) == start


async def test_hooks_in_code_come_after_those_of_plugins(toys: Shelf) -> None:
    toys.module("toy_first_order", "order = []")
    toys.plugin(
        "first",
        hooks="""
        from locus.plugin import hookimpl
        from toy_first_order import order
        @hookimpl
        def locus_on_think(event): order.append("plugin")
        """,
    )

    class Mine(Hook):
        def on_think(self, event: ThinkEvent) -> None:
            importlib.import_module("toy_first_order").order.append("mine")

    await run(Agent(ScriptedModel("hi"), hooks=[Mine()], first=True))
    assert importlib.import_module("toy_first_order").order == ["plugin", "mine"]


async def test_two_agents_share_nothing_of_a_plugin(shelf: Shelf) -> None:
    shelf.plugin(
        "count",
        hooks="""
        from locus.plugin import Hook
        class Count(Hook):
            n = 0
            def on_think(self, event, run):
                self.n += 1
                run.report("count", self.n)
        """,
        references="('toy_count_hooks:Count',)",
    )
    one, two = (Agent(ScriptedModel("hi", after="repeat"), count=True) for _ in range(2))
    assert (await run(one)).reports["count"] == 1
    assert (await run(one)).reports["count"] == 2
    assert (await run(two)).reports["count"] == 1


# -- looking for what was not asked for ---------------------------------------------------------------


async def test_an_agent_that_asks_for_no_plugin_looks_for_none(no_discovery: Discovery) -> None:
    result = await run(Agent(ScriptedModel("hi"), hooks=[Recorder()]))
    assert result.message == "hi"
    with pytest.raises(DiscoveryRefused):
        Agent(ScriptedModel("hi"), toy=True)


async def test_only_the_plugins_that_were_asked_for_are_imported(toys: Shelf) -> None:
    add_broken(toys)
    toys.plugin("other", hooks="raise AssertionError('imported')")
    result = await run(Agent(ScriptedModel("hi"), plugins=["toy"]))
    assert result.message == "hi"
    assert "toy_other" not in sys.modules
    assert "toy_broken" not in sys.modules
    assert [p.name for p in plugins(result).plugins] == ["toy"]


# -- what is misspelled -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keyword", "nearest"),
    [
        ("toi", "toy"),
        ("toy_wrod", "toy_word"),
        ("max_iteration", "max_iterations"),
        ("system_promt", "system_prompt"),
        ("hook", "hooks"),
    ],
)
async def test_an_unknown_keyword_names_the_nearest_plugin_keyword_or_option(
    toys: Shelf, keyword: str, nearest: str
) -> None:
    options: dict[str, Any] = {keyword: 1}
    with pytest.raises(UnknownName, match=f"option of Agent '{keyword}'; did you mean '{nearest}'"):
        Agent(ScriptedModel(), **options)


@pytest.mark.parametrize("keyword", ["toy_wrod", "max_iteration"])
async def test_a_slip_of_a_known_keyword_advises_no_installation(toys: Shelf, keyword: str) -> None:
    options: dict[str, Any] = {keyword: 1}
    with pytest.raises(UnknownName) as caught:
        Agent(ScriptedModel(), **options)
    assert "pip install" not in str(caught.value)


async def test_an_unknown_keyword_that_is_near_nothing_lists_the_known_ones(shelf: Shelf) -> None:
    with pytest.raises(UnknownName, match="unknown option of Agent 'quux'; known: ") as caught:
        Agent(ScriptedModel(), quux=True)
    assert "pip install" not in str(caught.value)


async def test_an_unknown_name_in_the_list_names_the_nearest(toys: Shelf) -> None:
    with pytest.raises(UnknownName, match="plugin 'toyy'; did you mean 'toy'"):
        Agent(ScriptedModel(), plugins=["toyy"])


async def test_wrong_settings_are_all_named_when_the_agent_is_built(toys: Shelf) -> None:
    with pytest.raises(SettingsError) as caught:
        Agent(ScriptedModel(), toy={"wrd": "x", "times": 0})
    assert len(caught.value.problems) == 2
    assert "did you mean 'word'" in str(caught.value)
    assert "times" in str(caught.value)


async def test_contradictions_are_refused(toys: Shelf) -> None:
    with pytest.raises(ConfigError, match=r"Agent\(toy_word=\.\.\.\) contradicts toy=False; remove one of them"):
        Agent(ScriptedModel(), toy=False, toy_word="x")
    with pytest.raises(ConfigError, match="toy must be True, False"):
        Agent(ScriptedModel(), toy=None)


# -- files and the environment ------------------------------------------------------------------------

CONFIG = """
[plugins]
enabled = ["toy"]
[plugins.toy]
word = "from the file"
[agent]
model = "toy:said by a file"
system_prompt = "Be brief."
max_iterations = 3
"""


@pytest.fixture
def configured(toys: Shelf, tmp_path: Path) -> Path:
    toys.module(
        "toy_toy_models",
        "from locus_testkit import ScriptedModel\n"
        "def make(rest, settings): return ScriptedModel(rest, name=f'toy:{settings.word}')\n",
    )
    source = (toys.path / "toy_toy.py").read_text()
    provides = "provides={'model': 'toy_toy_models:make'}, settings="
    (toys.path / "toy_toy.py").write_text(source.replace("settings=", provides))
    path = tmp_path / "locus.toml"
    path.write_text(CONFIG)
    return path


async def test_a_file_says_which_plugins_which_settings_and_which_model(configured: Path) -> None:
    agent: Agent[None, str] = Agent(config=load_config(configured, environ={}))
    result = await run(agent)
    assert (result.message, result.reports["toy"]) == ("said by a file", "from the file")
    assert result.state.messages[0].text == "Be brief."
    assert agent.condition.bounds().iterations == 3
    assert agent.runtime.model.name == "toy:from the file"


async def test_what_the_program_says_wins_over_the_file_key_by_key(configured: Path) -> None:
    agent: Agent[None, str] = Agent(
        ScriptedModel("said by the program"),
        config=load_config(configured, environ={}),
        toy_times=2,
        system_prompt="Be polite.",
        max_iterations=5,
    )
    result = await run(agent)
    assert (result.message, result.reports["toy"]) == ("said by the program", "from the file from the file")
    assert result.state.messages[0].text == "Be polite."
    assert agent.condition.bounds().iterations == 5


@pytest.mark.parametrize(
    ("env", "given", "on"),
    [
        ("toy", {}, True),
        ("no:toy", {}, False),
        ("no:toy", {"toy": True}, True),
        ("", {"toy": False}, False),
        ("toy", {"plugins": ["no:toy"]}, False),
    ],
)
async def test_the_environment_comes_between_the_file_and_the_program(
    configured: Path, env: str, given: Any, on: bool
) -> None:
    config = load_config(configured, environ={"LOCUS_PLUGINS": env})
    result = await run(Agent(ScriptedModel("hi"), config=config, **given))
    assert ("toy" in result.reports) is on


async def test_the_environment_alone_does_not_reach_a_program_that_reads_no_configuration(
    toys: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCUS_PLUGINS", "toy")
    assert "toy" not in (await run(Agent(ScriptedModel("hi")))).reports
    config = load_config(start=toys.path)
    assert (await run(Agent(ScriptedModel("hi"), config=config))).reports["toy"] == "seen"


async def test_a_secret_comes_from_the_environment_and_is_shown_nowhere(
    toys: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "locus.toml"
    path.write_text('[plugins]\nenabled = ["toy"]\n[plugins.toy]\nkey = { env = "TOY_KEY" }\n')
    config = load_config(path, environ={})
    with pytest.raises(SettingsError, match="TOY_KEY, which is not set"):
        Agent(ScriptedModel("hi"), config=config)
    monkeypatch.setenv("TOY_KEY", "hush-hush")
    result = await run(Agent(ScriptedModel("hi"), config=config))
    assert "hush-hush" not in repr((result, result.reports, config))


# -- plugins that are broken --------------------------------------------------------------------------


async def test_a_broken_plugin_in_a_file_is_reported_and_the_others_run(toys: Shelf, tmp_path: Path) -> None:
    add_broken(toys)
    toys.plugin("future", api="(9, 0)")
    toys.plugin("typo", hooks="from locus.plugin import hookimpl\n@hookimpl\ndef locus_on_thinc(event): ...")
    path = tmp_path / "locus.toml"
    path.write_text('[plugins]\nenabled = ["broken", "future", "typo", "gone", "toy"]\n')
    recorder = Recorder()
    agent: Agent[None, str] = Agent(ScriptedModel("hi"), config=load_config(path, environ={}), hooks=[recorder])
    result = await run(agent)
    assert (result.message, result.reports["toy"]) == ("hi", "seen")
    seen = {p.name: p for p in plugins(result).plugins}
    assert {name: p.status for name, p in seen.items()} == {
        "toy": "active",
        "Recorder": "active",
        "broken": "failed",
        "future": "incompatible",
        "typo": "failed",
        "gone": "missing",
    }
    assert "a_module_that_is_not_there" in seen["broken"].detail
    assert "a_module_that_is_not_there" in seen["broken"].trace
    assert "9.0" in seen["future"].detail
    assert "locus_on_think" in seen["typo"].detail
    assert "gone" in seen["gone"].detail
    assert seen["broken"].version == "1.0"
    assert dict(of(recorder.events, RunStartEvent)[0].plugins) == {"toy": "1.2"}


@pytest.mark.parametrize(
    ("name", "error"), [("broken", PluginLoadError), ("future", PluginIncompatible), ("typo", HookSpecError)]
)
async def test_a_broken_plugin_that_was_asked_for_breaks_the_build(
    shelf: Shelf, tmp_path: Path, name: str, error: type[Exception]
) -> None:
    add_broken(shelf)
    shelf.plugin("future", api="(9, 0)")
    shelf.plugin("typo", hooks="from locus.plugin import hookimpl\n@hookimpl\ndef locus_on_thinc(event): ...")
    path = tmp_path / "locus.toml"
    path.write_text(f'required = ["{name}"]\n')
    for asking in (
        {name: True},
        {"plugins": [name]},
        {"config": load_config(path, environ={})},
    ):
        with pytest.raises(error, match=name):
            Agent(ScriptedModel(), **asking)


async def test_a_required_plugin_that_is_not_there_breaks_the_build(shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "locus.toml"
    path.write_text('required = ["gone"]\n')
    with pytest.raises(UnknownName, match="gone"):
        Agent(ScriptedModel(), config=load_config(path, environ={}))


async def test_a_guard_that_cannot_run_breaks_the_build_however_it_was_enabled(shelf: Shelf, tmp_path: Path) -> None:
    add_broken(shelf, guard="True")
    path = tmp_path / "locus.toml"
    path.write_text('[plugins]\nenabled = ["broken"]\n')
    with pytest.raises(PluginLoadError, match="broken"):
        Agent(ScriptedModel(), config=load_config(path, environ={}))


async def test_a_plugin_whose_hook_object_cannot_be_made_is_that_plugins_error(toys: Shelf, tmp_path: Path) -> None:
    toys.plugin(
        "stubborn",
        hooks="class Stubborn:\n    def __init__(self): raise RuntimeError('not today')",
        references="('toy_stubborn_hooks:Stubborn',)",
    )
    path = tmp_path / "locus.toml"
    path.write_text('[plugins]\nenabled = ["stubborn", "toy"]\n')
    result = await run(Agent(ScriptedModel("hi"), config=load_config(path, environ={})))
    seen = plugins(result).of("stubborn")
    assert seen is not None
    assert (seen.status, "not today" in seen.detail) == ("failed", True)
    assert result.reports["toy"] == "seen"


# -- what happens in the run --------------------------------------------------------------------------


async def test_failures_and_quarantines_of_a_plugin_are_in_the_report_of_the_run(shelf: Shelf) -> None:
    shelf.plugin(
        "flaky",
        version="0.3",
        hooks="""
        from locus.plugin import hookimpl
        @hookimpl
        def locus_on_iteration(event): raise LookupError("my mistake")
        @hookimpl
        def locus_on_think(event): return "nonsense"
        """,
    )
    recorder = Recorder()
    model = ScriptedModel(call("add", a=1), call("add", a=2), "done", "done")
    agent = Agent(model, tools=[add], flaky=True, hooks=[recorder])
    result = await run(agent)
    seen = plugins(result).of("flaky")
    assert seen is not None
    assert (seen.version, seen.status) == ("0.3", "quarantined")
    assert [(f.hook, f.count, f.quarantined) for f in seen.failures] == [
        ("locus_on_iteration", 3, True),
        ("locus_on_think", 3, True),
    ]
    assert seen.failures[0].error == "LookupError: my mistake"
    assert "locus_on_iteration" in seen.failures[0].trace
    assert dict(plugins(result).versions) == {"flaky": "0.3"}
    assert {e.plugin for e in of(recorder.events, HookFailedEvent)} == {"flaky"}

    again = plugins(await run(agent)).of("flaky")
    assert again is not None
    assert (again.status, [f.count for f in again.failures]) == ("active", [1, 1])


async def test_guard_timeout_and_order_of_a_manifest_hold_in_the_run(shelf: Shelf) -> None:
    hang = """
    import anyio
    from locus.plugin import hookimpl
    @hookimpl
    async def locus_on_iteration(event): await anyio.sleep_forever()
    """
    shelf.plugin("door", hooks=hang, guard="True", hook_timeout="0.01")
    result = await run(Agent(ScriptedModel(), door=True))
    assert result.stop_reason == "Cancelled: guard door failed"
    assert "hook_timeout" in failures(result, "door")[0].error

    shelf.plugin("slow", hooks=hang, hook_timeout="0.01")
    result = await run(Agent(ScriptedModel("hi"), slow=True))
    assert result.message == "hi"
    assert failures(result, "slow")[0].count == 1


async def test_a_plugin_contributes_tools_events_and_reasons_to_reflect(shelf: Shelf) -> None:
    shelf.plugin(
        "kitchen",
        hooks="""
        from attrs import frozen
        from locus import Event, tool
        from locus_kit.reflect import EveryIterations
        from locus.plugin import hookimpl

        @frozen(kw_only=True, eq=False, repr=False)
        class DishEvent(Event):
            name: str = ""

        @tool
        async def cook(dish: str) -> str:
            "Cooks."
            return f"{dish} is served"

        @hookimpl
        def locus_register_tools(): return [cook]
        @hookimpl
        def locus_register_events(): return [DishEvent]
        @hookimpl
        def locus_register_reflect_policies(): return [EveryIterations(1)]
        @hookimpl
        async def locus_reflect(state, run):
            await run.emit(DishEvent(name="soup"))
            return state.with_confidence(0.7)
        @hookimpl
        def locus_on_dish(event, run): run.report("kitchen", event.name)
        """,
    )
    recorder = Recorder()
    model = ScriptedModel(call("cook", dish="soup"), "done")
    result = await run(Agent(model, tools=[add], kitchen=True, hooks=[recorder]))
    assert results(result) == ["soup is served"]
    assert [t.name for t in model.requests[0].tools] == ["add", "cook"]
    assert result.reports["kitchen"] == "soup"
    assert result.state.confidence == 0.7
    assert "dish" in {e.type for e in recorder.events}


async def test_a_plugins_tool_does_not_replace_the_users_silently(shelf: Shelf) -> None:
    shelf.plugin(
        "maths",
        hooks="""
        from locus import tool
        from locus.plugin import hookimpl

        @tool
        async def add(a: int) -> int:
            "Adds differently."
            return -a

        @hookimpl
        def locus_register_tools(): return [add]
        """,
    )
    with pytest.raises(ConfigError, match="add"):
        Agent(ScriptedModel(), tools=[add], maths=True)


async def test_a_child_runs_with_its_own_plugins(toys: Shelf) -> None:
    from_child: list[Any] = []
    child = Agent(ScriptedModel("from the child"), toy=True)

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Asks the child."""
        result = await ctx.run_child(child, "x")
        from_child.append(result.reports["toy"])
        return str(result.message)

    result = await run(Agent(ScriptedModel(call("ask"), "done"), tools=[ask]))
    assert results(result) == ["from the child"]
    assert from_child == ["seen"]
    assert "toy" not in result.reports


# -- an open run and another version of a plugin -----------------------------------------------------


@pytest.mark.parametrize("later", [{"toy": {"word": "later", "times": 2}}, {"toy_times": 3}, {}])
async def test_an_open_run_continues_with_other_settings_of_a_plugin(toys: Shelf, later: dict[str, Any]) -> None:
    """Settings are no part of what is on record: a run that waits for a person outlives an upgrade."""
    store = MemoryStore()

    @tool
    def confirm(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.interrupt("Sure?"))

    def agent(*says: Any, **plugin: Any) -> Agent[None, str]:
        return Agent(ScriptedModel(*says), tools=[confirm], checkpointer=store, **plugin)

    before = await agent(call("confirm"), toy={"word": "before"}).run("x", thread_id="t")
    upgraded = agent("done", **later)
    after = await upgraded.resume("t", "yes")

    said = {"toy": "later later", "toy_times": "seen seen seen"}
    assert (before.stop_reason, before.reports["toy"]) == ("Interrupted", "before")
    assert (after.text, after.run_id, after.reports.get("toy")) == (
        "done",
        before.run_id,
        said.get(next(iter(later), "")),
    )
    assert results(after) == ["yes"]
    assert await timetravel.replay(upgraded, "t")
