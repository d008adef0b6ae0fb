"""The hooks as they are specified: complete, documented, and with the signatures that plugins rely on."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from locus.core.events import Event, event_types, register_event
from locus.hooks import observer_hook, specs
from locus.hooks.manager import HookManager
from locus.hooks.markers import Lifetime, hookimpl, spec
from locus.hooks.specs import HOOKS, observer_info
from locus.plugins.manifest import API

SIGNATURES = {
    "locus_register_tools": (),
    "locus_register_events": (),
    "locus_register_conditions": (),
    "locus_register_commands": (),
    "locus_register_reflect_policies": (),
    "locus_register_prices": (),
    "locus_check_tools": ("tools",),
    "locus_run_session": ("run",),
    "locus_decide_tool_call": ("call", "run"),
    "locus_label_result": ("call", "result", "run"),
    "locus_decide_route": ("node", "state", "proposed"),
    "locus_review_answer": ("answer", "state", "run"),
    "locus_filter_input": ("prompt", "run"),
    "locus_filter_progress": ("message", "call", "run"),
    "locus_shorten_result": ("text", "call", "limit", "run"),
    "locus_wrap_node": ("call_next", "node", "state", "run"),
    "locus_wrap_model_call": ("call_next", "request", "run"),
    "locus_wrap_tool_call": ("call_next", "call", "run"),
    "locus_parse_result": ("state",),
    "locus_think": ("state", "run"),
    "locus_execute": ("state", "run"),
    "locus_reflect": ("state", "run"),
    "locus_terminate": ("state", "run"),
}


def kernel_events() -> list[type[Event]]:
    return [cls for cls in event_types().values() if cls.__module__ == "locus.core.events"]


@pytest.mark.parametrize("event", kernel_events(), ids=lambda cls: cls.__name__)
def test_every_kernel_event_has_a_hook_of_its_own(event: type[Event]) -> None:
    assert HOOKS[observer_hook(event.type)].family == "observe"


def test_no_observer_hook_is_without_an_event() -> None:
    observers = {name for name, info in HOOKS.items() if info.family == "observe"}

    assert observers == {observer_hook(cls.type) for cls in kernel_events()} | {"locus_on_event"}


def test_the_arguments_of_every_hook_are_the_documented_ones() -> None:
    observers = {name: ("event", "run") for name, info in HOOKS.items() if info.family == "observe"}

    assert {name: info.arguments for name, info in HOOKS.items()} == SIGNATURES | observers


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_what_it_is_for_and_since_when_it_exists(name: str) -> None:
    info = HOOKS[name]

    assert inspect.getdoc(info.function)
    assert (0, 0) < info.lifetime.since <= API
    assert info.lifetime.removed_in is None or info.lifetime.deprecated_in is not None


@pytest.mark.parametrize("family", sorted({info.family for info in HOOKS.values()}))
def test_every_family_says_what_happens_when_one_of_its_hooks_fails(family: str) -> None:
    start = f"\n\n{family.capitalize()}: "
    assert start in (specs.__doc__ or "")

    description = (specs.__doc__ or "").partition(start)[2]
    following = re.split(r"\n\n[A-Z][a-z]+: ", description)[0]

    assert any(word in following for word in ("fail", "raises"))


def test_an_event_of_a_plugin_has_the_same_kind_of_hook() -> None:
    info = observer_info("toy_moved")

    assert (info.name, info.arguments) == ("locus_on_toy_moved", ("event", "run"))


def test_implementing_a_hook_that_goes_away_warns_and_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def locus_think(state: Any, run: Any) -> None: ...

    old = Lifetime(since=(1, 0), deprecated_in=(1, 4), removed_in=(2, 0), instead="locus_wrap_node")
    retired = spec(old)(locus_think)
    info = HOOKS["locus_think"]
    monkeypatch.setitem(HOOKS, "locus_think", type(info)(**{**_fields(info), "lifetime": old, "function": retired}))

    class Planner:
        @hookimpl
        def locus_think(self, state: Any) -> None: ...

    with pytest.warns(DeprecationWarning, match=r"since plugin API 1\.4 and goes with 2\.0; use locus_wrap_node"):
        HookManager.build(hooks=[Planner()])


def _fields(info: Any) -> dict[str, Any]:
    return {name: getattr(info, name) for name in ("name", "family", "arguments", "lifetime", "function")}


def test_an_event_class_registered_at_run_time_is_heard_through_its_hook() -> None:
    @register_event
    class SpecsProbeEvent(Event):
        pass

    class Listener:
        @hookimpl
        def locus_on_specs_probe(self, event: Any) -> None: ...

    table = HookManager.build(hooks=[Listener()]).table

    assert [impl.hook for impl in table.observers(SpecsProbeEvent)] == ["locus_on_specs_probe"]
