"""The fixtures and the marker, used as a test of a plugin uses them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus import Agent
from locus.core.errors import UnknownName
from locus.journal import MemoryStore
from locus.plugin import API, Plugin
from locus.plugins.discovery import Catalogue
from locus_testkit import DiscoveryRefused, FakeClock, ScriptedModel, TemporaryPlugins, call
from locus_testkit.discovery import Discovery

pytest_plugins = ["pytester"]

AUDIT = """
from attrs import frozen
from locus.plugin import Hook

@frozen
class Settings:
    level: str = "low"

class Audit(Hook):
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def on_terminate(self, event, run) -> None:
        run.report("audit", (self.settings.level, event.reason))
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest with only the plugins that count."""
    plugins = ("-p", "anyio", "-p", "locus_testkit", "-p", "no:cacheprovider")
    return pytester.runpytest_inprocess("--disable-plugin-autoload", *plugins, *arguments)


@pytest.mark.anyio
async def test_scripted_model_store_and_clock_make_a_run(
    scripted: Callable[..., ScriptedModel], memory_store: MemoryStore, fake_clock: FakeClock
) -> None:
    def wait() -> str:
        """Let an hour pass."""
        fake_clock.advance(3600)
        return "waited"

    agent: Agent[Any, Any] = Agent(
        scripted(call("wait"), "Done."), tools=[wait], checkpointer=memory_store, clock=fake_clock
    )
    result = await agent.run("Wait.", thread_id="t")
    assert result.text == "Done."
    assert result.state.started_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert result.state.updated_at == result.state.started_at + timedelta(hours=1)
    assert result.state.active_seconds == 3600
    assert len(await memory_store.read("t")) > 0


def test_clock_only_goes_forward(fake_clock: FakeClock) -> None:
    fake_clock.advance(1.5)
    assert fake_clock.monotonic() == 1.5
    assert repr(fake_clock) == "<FakeClock 2030-01-01T00:00:01.500000+00:00>"
    with pytest.raises(ValueError, match="seconds must be 0 or more, got -1"):
        fake_clock.advance(-1)
    with pytest.raises(ValueError, match="must have a time zone"):
        FakeClock(datetime(2030, 1, 1))  # noqa: DTZ001  # what it is about


def test_script_that_ran_out_inside_a_run_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from locus import Agent

        def test_nobody_looks_at_the_result(scripted):
            Agent(scripted()).run_sync("Hello.")

        def test_script_suffices(scripted):
            Agent(scripted("Hi.")).run_sync("Hello.")
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ScriptExhausted: scripted:model was scripted with 0 turn(s)*"])


def test_both_backends_are_an_opt_in(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.anyio

        async def test_as_the_project_says():
            pass

        @pytest.mark.both_backends
        async def test_everywhere():
            pass
        """
    )
    result = run(pytester, "-v", "--strict-markers")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_everywhere[[]asyncio[]]*", "*test_everywhere[[]trio[]]*"])


# -- plugins --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_discovery")
def test_discovery_is_refused_unless_asked_for() -> None:
    with pytest.raises(DiscoveryRefused, match="no_discovery"):
        Agent(ScriptedModel("Hi."), plugins=["anything"])
    with pytest.raises(DiscoveryRefused):
        Catalogue().names()


def test_discovery_can_be_allowed(no_discovery: Discovery) -> None:
    with no_discovery.allow():
        Catalogue().names()
    with pytest.raises(DiscoveryRefused):
        Catalogue().names()


def test_written_plugin_runs_without_being_installed(plugin_catalogue: TemporaryPlugins) -> None:
    plugin_catalogue.write("audit", AUDIT, hooks=["Audit"], settings="Settings")
    agent: Agent[Any, Any] = Agent(ScriptedModel("Hi."), catalogue=plugin_catalogue.catalogue, audit={"level": "high"})
    assert agent.run_sync("Hello.").reports["audit"] == ("high", "NoToolCalls")


@pytest.mark.parametrize("answer", ["one", "two"])
def test_plugins_of_one_test_are_gone_in_the_next(plugin_catalogue: TemporaryPlugins, answer: str) -> None:
    source = f"from locus_testkit import ScriptedModel\ndef make(text, settings): return ScriptedModel({answer!r})\n"
    plugin_catalogue.write("echo", source, provides={"model": "make"})
    agent: Agent[Any, Any] = Agent("echo:x", catalogue=plugin_catalogue.catalogue)
    assert agent.run_sync("Hello.").text == answer


def test_catalogue_holds_added_manifests_and_no_other(plugin_catalogue: TemporaryPlugins) -> None:
    plugin_catalogue.add(Plugin(name="other", api=API, summary="Another one."))
    assert plugin_catalogue.catalogue.names() == ("other",)
    with pytest.raises(UnknownName):
        plugin_catalogue.catalogue.manifest("audit")
