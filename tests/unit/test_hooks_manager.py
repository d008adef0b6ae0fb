"""Building the hooks of an agent: what is accepted, what is refused, and in which order they are called."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from attrs import frozen

from locus.core.directives import Cancel, Reject
from locus.core.errors import HookSpecError
from locus.core.events import Event, IterationEvent, ModelChunkEvent, ThinkEvent, ToolStartEvent
from locus.hooks.hook import Hook
from locus.hooks.manager import HookManager
from locus.hooks.markers import hookimpl
from locus.plugins.activation import ActivePlugin
from locus.plugins.manifest import Plugin

RUN: Any = object()


def plugin(name: str, *instances: object, fatal: bool = False, **fields: Any) -> ActivePlugin:
    manifest = Plugin(name=name, api=(1, 0), summary="A toy.", **fields)
    return ActivePlugin(manifest=manifest, instances=instances, version="2.1", fatal=fatal)


def callers(manager: HookManager, hook: str) -> list[str]:
    return [impl.plugin for impl in manager.table.impls(hook)]


class Thinker:
    """A plain object with one marked method."""

    @hookimpl
    def locus_on_think(self, event: Any) -> None: ...


# -- what a hook may look like ---------------------------------------------------------------------


def test_a_hooks_methods_are_mapped_whatever_their_arguments_are_called() -> None:
    class Watch(Hook):
        def on_iteration(self, ev: IterationEvent) -> tuple[Any, ...]:
            return (ev,)

        def on_think(self, what: ThinkEvent, where: Any) -> tuple[Any, ...]:
            return (what, where)

        def on_tool_call(self, asked: Any) -> tuple[Any, ...]:
            return (asked,)

    table = HookManager.build(hooks=[Watch()]).table

    assert table.observers(IterationEvent)[0].call("event", RUN) == ("event",)
    assert table.observers(ThinkEvent)[0].call("event", RUN) == ("event", RUN)
    assert table.impls("locus_decide_tool_call")[0].call("call", RUN) == ("call",)


def test_a_hook_may_mark_further_methods_by_their_full_names() -> None:
    class Both(Hook):
        def on_iteration(self, ev: Any) -> None: ...

        @hookimpl
        def locus_wrap_node(self, call_next: Any, state: Any) -> Any: ...

    assert set(HookManager.build(hooks=[Both()]).table.hooks) == {"locus_on_iteration", "locus_wrap_node"}


def test_attributes_of_a_hook_that_are_not_methods_are_left_alone() -> None:
    class Configured(Hook):
        on_duty = True

        @property
        def off_limits(self) -> int:
            raise AssertionError("a property must not be read")

    assert HookManager.build(hooks=[Configured()]).table.hooks == {}


@pytest.mark.parametrize(
    "body",
    [
        "def locus_decide_tool_call(call, run): return (call, run)",
        "def locus_decide_tool_call(run, call): return (call, run)",
        "def locus_decide_tool_call(call, *, run): return (call, run)",
        "def locus_decide_tool_call(call, run=None): return (call, run)",
        "def locus_decide_tool_call(call, other=1, run=None): return (call, run)",
    ],
)
def test_an_implementation_gets_the_arguments_it_names_in_any_order(body: str) -> None:
    module = ModuleType("toy")
    exec(f"from locus.hooks.markers import hookimpl\n@hookimpl\n{body}", vars(module))

    (impl,) = HookManager.build(hooks=[module]).table.impls("locus_decide_tool_call")

    assert impl.call("call", "run") == ("call", "run")


def test_an_implementation_may_leave_arguments_out() -> None:
    class Few:
        @hookimpl
        def locus_wrap_node(self, state: Any, call_next: Any) -> Any:
            return (state, call_next)

        @hookimpl
        def locus_think(self) -> str:
            return "nothing"

        @hookimpl
        def locus_execute(self, run: Any) -> Any:
            return run

    table = HookManager.build(hooks=[Few()]).table

    assert table.impls("locus_wrap_node")[0].call("next", "node", "state", "run") == ("state", "next")
    assert table.impls("locus_think")[0].call("state", "run") == "nothing"
    assert table.impls("locus_execute")[0].call("state", "run") == "run"


def test_static_and_class_methods_work_and_a_hook_may_have_another_name_in_the_source() -> None:
    class Odd:
        @hookimpl
        @staticmethod
        def locus_on_think(event: Any) -> str:
            return "static"

        @hookimpl
        @classmethod
        def locus_on_iteration(cls, event: Any) -> str:
            return cls.__name__

        @hookimpl(specname="locus_on_terminate")
        def finished(self, event: Any) -> str:
            return "renamed"

    table = HookManager.build(hooks=[Odd()]).table

    called = {name: impl.call("event", RUN) for name, (impl,) in table.hooks.items()}
    assert called == {
        "locus_on_think": "static",
        "locus_on_iteration": "Odd",
        "locus_on_terminate": "renamed",
    }


def test_two_hooks_with_equal_values_are_two_hooks() -> None:
    @frozen
    class Equal(Hook):
        level: str = "INFO"

        def on_think(self, ev: Any) -> None: ...

    manager = HookManager.build(hooks=[Equal(), Equal()])

    assert callers(manager, "locus_on_think") == ["Equal", "Equal#2"]
    assert [(r.name, r.kind) for r in manager.reports] == [("Equal", "hook"), ("Equal#2", "hook")]


def test_an_optional_implementation_of_an_unknown_hook_is_accepted_and_never_called() -> None:
    class Optional:
        @hookimpl(optionalhook=True)
        def locus_on_something_of_a_plugin(self, event: Any) -> None: ...

    assert HookManager.build(hooks=[Optional()]).table.hooks == {}


# -- what is refused -------------------------------------------------------------------------------


def refused(source: object) -> str:
    with pytest.raises(HookSpecError) as caught:
        HookManager.build(hooks=[source])
    return str(caught.value)


def _hook(method: str, *parameters: str, prefix: str = "", mark: str = "") -> object:
    """A Hook with one method, made from its source."""
    names: dict[str, Any] = {"Hook": Hook, "hookimpl": hookimpl}
    head = f"    {mark}\n" if mark else ""
    exec(f"class Toy(Hook):\n{head}    {prefix}def {method}(self, {', '.join(parameters)}): ...", names)
    made: object = names["Toy"]()
    return made


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_hook("on_itertion", "ev"), "on_itertion is not a hook; did you mean 'on_iteration'?"),
        (_hook("on_tool_cal", "call"), "on_tool_cal is not a hook; did you mean 'on_tool_call'?"),
        (_hook("on_zzz", "ev"), "no event has that name: import or enable the plugin that defines it"),
        (_hook("locus_on_thnk", "event", mark="@hookimpl"), "did you mean 'locus_on_think'?"),
        (_hook("locus_wrap_tool", "call_next", mark="@hookimpl"), "did you mean 'locus_wrap_tool_call'?"),
        (_hook("locus_xyzzy", mark="@hookimpl"), "locus_xyzzy is not a hook; locus.hooks.specs lists the hooks"),
        (
            _hook("locus_on_think", "evnt", mark="@hookimpl"),
            "takes 'evnt'; the hook has (event, run); did you mean",
        ),
        (
            _hook("locus_on_think", "*events", mark="@hookimpl"),
            "takes *events; name the arguments it uses",
        ),
        (
            _hook("locus_on_think", "*", "clock", mark="@hookimpl"),
            "takes 'clock'; the hook has (event, run)",
        ),
        (_hook("locus_on_think", "event"), "locus_on_think is not marked; put @hookimpl on it"),
        (_hook("locus_anything", "event"), "locus_anything is not marked; put @hookimpl on it"),
        (_hook("on_think", "ev", "run", "more"), "must take one argument, or two with the run"),
        (_hook("on_think", "*", "ev"), "must take one argument, or two with the run"),
        (_hook("on_think", ""), "must take one argument, or two with the run"),
        (_hook("locus_register_tools", "", prefix="async ", mark="@hookimpl"), "while an agent is built and must be"),
        (_hook("locus_think", "state", mark="@hookimpl(wrapper=True)"), "locus_think is marked as a wrapper"),
        (Hook, "Hook is a class; pass an instance: Hook()"),
        (object(), "implements no hook"),
        (ModuleType("empty"), "implements no hook"),
    ],
)
def test_what_would_never_fire_is_refused_with_the_nearest_name(source: object, message: str) -> None:
    assert message in refused(source)


def test_a_generator_is_not_a_hook() -> None:
    class Yields(Hook):
        def on_think(self, ev: Any) -> Any:
            yield ev

    class AsyncYields(Hook):
        async def on_think(self, ev: Any) -> Any:
            yield ev

    assert "on_think is a generator" in refused(Yields())
    assert "on_think is a generator" in refused(AsyncYields())


def test_a_hook_that_names_the_same_hook_twice_is_refused() -> None:
    class Twice(Hook):
        def on_think(self, ev: Any) -> None: ...

        @hookimpl
        def locus_on_think(self, event: Any) -> None: ...

    assert "locus_on_think and on_think implement the same hook" in refused(Twice())


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("nan")])
def test_a_hook_timeout_that_is_not_a_time_is_refused(timeout: Any) -> None:
    class Late(Hook):
        hook_timeout = timeout

        def on_think(self, ev: Any) -> None: ...

    assert "hook_timeout must be" in refused(Late())


def test_a_function_that_a_module_only_imported_is_not_taken_for_a_forgotten_mark() -> None:
    from locus.hooks.specs import locus_think  # noqa: PLC0415 - the import is what this is about

    module = ModuleType("toy")
    vars(module)["locus_think"] = locus_think
    exec(
        "from locus.hooks.markers import hookimpl\n@hookimpl\ndef locus_on_think(event): ...",
        vars(module),
    )

    assert set(HookManager.build(hooks=[module]).table.hooks) == {"locus_on_think"}


# -- one broken plugin -----------------------------------------------------------------------------


class HalfBroken:
    """The first hook is right, the second is not."""

    @hookimpl
    def locus_on_iteration(self, event: Any) -> None: ...

    @hookimpl
    def locus_on_thinking(self, event: Any) -> None: ...


def test_a_plugin_with_one_wrong_hook_is_left_out_as_a_whole_and_reported() -> None:
    manager = HookManager.build([plugin("good", Thinker()), plugin("half", Thinker(), HalfBroken())])

    assert callers(manager, "locus_on_think") == ["good"]
    assert callers(manager, "locus_on_iteration") == []
    assert [(r.name, r.status) for r in manager.reports] == [("good", "active"), ("half", "failed")]
    assert "locus_on_thinking is not a hook; did you mean 'locus_on_think'?" in manager.reports[1].detail


def test_the_plugins_after_a_broken_one_are_still_checked_on_their_own() -> None:
    manager = HookManager.build([plugin("half", HalfBroken()), plugin("good", Thinker())])

    assert [(r.name, r.status) for r in manager.reports] == [("half", "failed"), ("good", "active")]


def test_a_plugin_that_must_work_breaks_the_build() -> None:
    with pytest.raises(HookSpecError, match="locus_on_thinking") as caught:
        HookManager.build([plugin("half", HalfBroken(), fatal=True)])

    assert caught.value.plugin == "half"


def test_reports_of_plugins_that_never_got_this_far_are_kept() -> None:
    broken = HookManager.build([plugin("half", HalfBroken())]).reports

    manager = HookManager.build([plugin("good", Thinker())], reports=broken)

    assert [(r.name, r.status, r.version) for r in manager.reports] == [
        ("good", "active", "2.1"),
        ("half", "failed", "2.1"),
    ]


# -- order -----------------------------------------------------------------------------------------


def marked(**options: Any) -> object:
    class Marked:
        def locus_on_think(self, event: Any) -> None: ...

    hookimpl(**options)(Marked.locus_on_think)
    return Marked()


def test_plugins_come_in_their_order_and_the_users_hooks_behind_them() -> None:
    class Mine(Hook):
        def on_think(self, ev: Any) -> None: ...

    manager = HookManager.build([plugin("b", marked()), plugin("a", marked())], [Mine(), marked()])

    assert callers(manager, "locus_on_think") == ["b", "a", "Mine", "Marked"]


def test_marks_come_before_the_order_and_keep_it_among_themselves() -> None:
    manager = HookManager.build(
        [
            plugin("last1", marked(trylast=True)),
            plugin("first1", marked(tryfirst=True)),
            plugin("plain", marked()),
            plugin("first2", marked(tryfirst=True)),
            plugin("last2", marked(trylast=True)),
        ]
    )

    assert callers(manager, "locus_on_think") == ["first1", "first2", "plain", "last1", "last2"]


def test_several_hook_objects_of_one_plugin_keep_the_manifests_order() -> None:
    class First:
        @hookimpl
        def locus_on_think(self, event: Any) -> int:
            return 1

    class Second:
        @hookimpl
        def locus_on_think(self, event: Any) -> int:
            return 2

    table = HookManager.build([plugin("two", First(), Second())]).table

    assert [impl.call(None, RUN) for impl in table.impls("locus_on_think")] == [1, 2]


# -- what is compiled ------------------------------------------------------------------------------


def test_guard_timeout_and_buffers_come_from_the_manifest_or_from_the_hook() -> None:
    class Own(Hook):
        guard = True
        hook_timeout = 2
        buffers = True

        async def on_think(self, ev: Any) -> None: ...

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any) -> None: ...

    class Plain:
        @hookimpl
        async def locus_on_think(self, event: Any) -> None: ...

    guarded = plugin("guarded", Plain(), guard=True, hook_timeout=9)
    table = HookManager.build([guarded, plugin("free", Plain())], [Own()]).table

    seen = [(i.plugin, i.guard, i.timeout, i.is_async) for i in table.impls("locus_on_think")]
    assert seen == [("guarded", True, 9.0, True), ("free", False, None, True), ("Own", True, 2.0, True)]
    assert table.buffers
    assert not HookManager.build([plugin("free", Plain())]).table.buffers


def test_a_hook_named_by_its_author_is_reported_by_that_name() -> None:
    class Watch(Hook):
        name = "my watch"
        guard = True

        def on_think(self, ev: Any) -> None: ...

    (report,) = HookManager.build(hooks=[Watch()]).reports

    assert (report.name, report.guard) == ("my watch", True)


def test_an_agent_without_hooks_costs_one_look_up_per_question() -> None:
    table = HookManager.build().table

    assert table.impls("locus_think") == ()
    assert table.observers(ThinkEvent) == ()
    assert not table.listeners[ModelChunkEvent]
    assert not table.buffers


def test_who_hears_an_event_is_its_own_hook_and_the_general_one_in_one_order() -> None:
    class Everything:
        @hookimpl
        def locus_on_event(self, event: Any) -> None: ...

        @hookimpl
        def locus_on_think(self, event: Any) -> None: ...

    table = HookManager.build([plugin("one", Everything()), plugin("two", Thinker())], [Everything()]).table

    heard = [(impl.plugin, impl.hook) for impl in table.observers(ThinkEvent)]
    assert heard == [
        ("one", "locus_on_think"),
        ("one", "locus_on_event"),
        ("two", "locus_on_think"),
        ("Everything", "locus_on_think"),
        ("Everything", "locus_on_event"),
    ]
    assert table.observers(ThinkEvent) is table.listeners[ThinkEvent]
    assert [impl.hook for impl in table.observers(IterationEvent)] == ["locus_on_event"] * 2


def test_a_general_observer_hears_chunks_whether_it_is_async_or_not() -> None:
    class Async(Hook):
        async def on_event(self, ev: Any) -> None: ...

    class Sync(Hook):
        def on_event(self, ev: Any) -> None: ...

    for hook, is_async in ((Async(), True), (Sync(), False)):
        [impl] = HookManager.build(hooks=[hook]).table.listeners[ModelChunkEvent]
        assert impl.is_async is is_async


def test_a_general_observer_can_do_without_chunks() -> None:
    class Quiet(Hook):
        hears_chunks = False

        async def on_event(self, ev: Any) -> None: ...

    listeners = HookManager.build(hooks=[Quiet()]).table.listeners
    assert not listeners[ModelChunkEvent]
    assert listeners[ThinkEvent]


def test_the_hook_of_the_sources_example_works_as_written() -> None:
    class CostGuardHook(Hook):
        async def on_iteration(self, ev: IterationEvent) -> Any:
            return Cancel(reason=f"token budget exhausted at {ev.token_total}")

        async def on_tool_start(self, ev: ToolStartEvent) -> Any:
            return Reject("no")

    table = HookManager.build(hooks=[CostGuardHook()]).table

    assert [i.is_async for i in table.observers(IterationEvent) + table.observers(ToolStartEvent)] == [True, True]


# -- contributions ---------------------------------------------------------------------------------


@frozen(kw_only=True)
class ManagerProbeEvent(Event):
    """An event of a toy plugin."""

    depth: int = 0


class Contributor:
    """Contributes one of each and hears its own event."""

    @hookimpl
    def locus_register_tools(self) -> list[object]:
        return ["a tool"]

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        return [ManagerProbeEvent]

    @hookimpl
    def locus_register_conditions(self) -> tuple[type, ...]:
        return (int,)

    @hookimpl
    def locus_register_reflect_policies(self) -> list[Any]:
        return [str]

    @hookimpl
    def locus_register_commands(self) -> Any:
        raise AssertionError("only the command line asks for commands")

    @hookimpl
    def locus_on_manager_probe(self, event: Any) -> None: ...


def test_what_a_plugin_contributes_is_collected_with_its_name_and_its_event_has_a_hook() -> None:
    class Right(Contributor):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[Any]:
            return [len]

    manager = HookManager.build([plugin("rich", Right())])

    contributed = manager.contributed
    assert {hook: [(c.plugin, c.value) for c in values] for hook, values in contributed.items()} == {
        "locus_register_tools": [("rich", "a tool")],
        "locus_register_events": [("rich", ManagerProbeEvent)],
        "locus_register_conditions": [("rich", int)],
        "locus_register_reflect_policies": [("rich", len)],
    }
    assert [impl.plugin for impl in manager.table.observers(ManagerProbeEvent)] == ["rich"]


def contributing(hook: str, value: Any) -> object:
    class Toy:
        pass

    def contribute(self: object) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    contribute.__name__ = hook
    setattr(Toy, hook, hookimpl(contribute))
    return Toy()


@pytest.mark.parametrize(
    ("hook", "value", "message"),
    [
        ("locus_register_tools", ValueError("no"), "locus_register_tools raised ValueError: no"),
        ("locus_register_tools", (1 / n for n in (1, 0)), "locus_register_tools raised ZeroDivisionError"),
        ("locus_register_tools", 7, "locus_register_tools returned 7; return a list, or None"),
        ("locus_register_tools", "tool", "returned 'tool'; return a list, or None"),
        ("locus_register_tools", {"a": 1}, "return a list, or None"),
        ("locus_register_events", [int], "return classes derived from Event"),
        ("locus_register_events", KeyError("no"), "locus_register_events raised KeyError"),
        ("locus_register_conditions", [3], "return classes of conditions"),
        ("locus_register_reflect_policies", [3], "return functions (state) -> str | None"),
    ],
)
def test_a_plugin_that_contributes_nonsense_is_left_out(hook: str, value: Any, message: str) -> None:
    manager = HookManager.build([plugin("odd", Thinker(), contributing(hook, value)), plugin("good", Thinker())])

    assert callers(manager, "locus_on_think") == ["good"]
    (report,) = [r for r in manager.reports if r.name == "odd"]
    assert report.status == "failed"
    assert message in report.detail


def test_a_coroutine_in_place_of_contributions_is_refused_and_leaves_no_warning() -> None:
    async def later() -> list[object]:
        raise AssertionError("nobody awaits this")

    class Delegates:
        @hookimpl
        def locus_register_tools(self) -> Any:
            return later()

    manager = HookManager.build([plugin("odd", Delegates())])

    assert "return a list, or None" in manager.reports[0].detail


def test_a_plugin_that_is_left_out_contributes_nothing() -> None:
    odd = plugin("odd", contributing("locus_register_tools", ["tool"]), contributing("locus_register_conditions", [3]))

    manager = HookManager.build([odd, plugin("good", Thinker())])

    assert manager.contributed == {}


def test_an_event_type_that_a_hook_could_not_hear_is_refused() -> None:
    @frozen(kw_only=True)
    class ToolCallEvent(Event):
        pass

    manager = HookManager.build([plugin("odd", contributing("locus_register_events", [ToolCallEvent]))])

    assert "the event type 'tool_call' is reserved" in manager.reports[0].detail


def test_an_event_type_that_is_taken_is_refused() -> None:
    @frozen(kw_only=True)
    class ThinkEvent(Event):
        pass

    manager = HookManager.build([plugin("odd", contributing("locus_register_events", [ThinkEvent]))])

    assert "the event type 'think' is taken by locus.core.events.ThinkEvent" in manager.reports[0].detail


def test_commands_are_collected_when_asked_for_and_a_broken_plugin_does_not_hide_the_others() -> None:
    manager = HookManager.build(
        [
            plugin("bad", contributing("locus_register_commands", OSError("gone"))),
            plugin("good", contributing("locus_register_commands", ["command"])),
            plugin("none", contributing("locus_register_commands", None)),
        ]
    )

    found, errors = manager.collect("locus_register_commands")

    assert [(c.plugin, c.value) for c in found] == [("good", "command")]
    assert [(e.plugin, "OSError: gone" in str(e)) for e in errors] == [("bad", True)]
