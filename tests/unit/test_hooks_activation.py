"""Which plugins are on, with which settings, in which order, and what happens when one of them cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.toy_plugins import Shelf, shelf

from locus.core.errors import (
    ConfigError,
    PluginError,
    PluginIncompatible,
    PluginLoadError,
    SettingsError,
    UnknownName,
)
from locus.hooks.manager import HookManager
from locus.plugins.activation import Activation, PluginRequest, activate, select, split_names
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import Plugin
from locus.plugins.settings import Layer

__all__ = ["shelf"]

SETTINGS = """
from attrs import field, frozen, validators

@frozen
class Settings:
    level: str = "INFO"
    interval: int = field(default=2, validator=validators.ge(1))
"""

HOOKS = """
from locus.plugin import Hook, hookimpl

class Audit(Hook):
    def __init__(self, settings):
        self.settings = settings

    def on_think(self, ev):
        return None
"""


@pytest.fixture
def audit(shelf: Shelf) -> Shelf:
    """A plugin with settings, a keyword and a hook class."""
    shelf.module("toy_audit_settings", SETTINGS)
    shelf.plugin(
        "audit",
        version="1.2",
        hooks=HOOKS,
        settings="'toy_audit_settings:Settings'",
        keywords="{'audit_interval': 'interval'}",
        references="('toy_audit_hooks:Audit',)",
    )
    return shelf


def names(activation: Activation) -> list[str]:
    return [plugin.manifest.name for plugin in activation.plugins]


def settings(activation: Activation, name: str = "audit") -> tuple[Any, ...]:
    made = activation.settings[name]
    return (made.level, made.interval)


class NoScan(Catalogue):
    """A catalogue that must not be asked."""

    def names(self) -> tuple[str, ...]:
        raise AssertionError("nothing was asked for")

    manifest = extended = names  # type: ignore[assignment]


# -- which -----------------------------------------------------------------------------------------


def test_each_layer_may_switch_on_and_off_what_weaker_ones_said() -> None:
    selection = select(
        [
            ("config", ("a", "b", "c")),
            ("environment", split_names(" no:a , d ,, ")),
            ("command line", ("no:d", "e")),
            ("code", ("d", "no:b")),
        ]
    )

    assert dict(selection.enabled) == {"c": "config", "e": "command line", "d": "code"}
    assert dict(selection.disabled) == {"a": "environment", "b": "code"}


def test_a_layer_may_switch_off_everything_weaker_and_still_ask_for_something() -> None:
    selection = select([("config", ("a", "b")), ("command line", ("no:*", "c"))])

    assert dict(selection.enabled) == {"c": "command line"}
    assert set(selection.disabled) == {"a", "b"}


@given(st.lists(st.sampled_from(["a", "b", "no:a", "no:b", "no:*"])))
def test_a_name_is_never_on_and_off(items: list[str]) -> None:
    selection = select([("config", ("a",)), ("code", items)])

    assert not set(selection.enabled) & set(selection.disabled)
    assert "*" not in selection.enabled


def test_what_is_required_is_on_and_cannot_be_switched_off() -> None:
    assert dict(select([("required", ("a",)), ("code", ("a",))]).enabled) == {"a": "required"}
    for off in ("no:a", "no:*"):
        with pytest.raises(
            ConfigError, match=f"plugin 'a' is required and switched off by '{off}'".replace("*", r"\*")
        ):
            select([("required", ("a",)), ("environment", (off,))])


@pytest.mark.parametrize("wanted", [PluginRequest(cli=("no:adit",)), PluginRequest(plugins=("no:adit",))])
def test_switching_off_what_is_not_there_is_a_typing_mistake(audit: Shelf, wanted: PluginRequest) -> None:
    with pytest.raises(UnknownName, match="unknown plugin 'adit'; did you mean 'audit'"):
        activate(wanted)


def test_the_environment_hears_of_it_in_a_report(audit: Shelf) -> None:
    activation = activate(PluginRequest(enabled=("audit",), env="no:adit"))

    (report,) = [each for each in activation.reports if each.name == "adit"]
    assert (report.status, "did you mean 'audit'?" in report.detail) == ("missing", True)
    assert names(activation) == ["audit"]


@pytest.mark.parametrize(
    "wanted",
    [
        PluginRequest(enabled=("gone",), cli=("no:gone",)),
        PluginRequest(env="gone", cli=("no:*",)),
        PluginRequest(cli=("gone", "no:gone")),
    ],
)
def test_what_somebody_asks_for_can_be_switched_off_although_it_is_not_installed(
    audit: Shelf, wanted: PluginRequest
) -> None:
    assert [(each.name, each.status) for each in activate(wanted).reports] == [("gone", "disabled")]


@pytest.mark.parametrize("item", ["", "no:", "  "])
def test_an_item_that_names_nothing_is_refused(item: str) -> None:
    with pytest.raises(ConfigError, match="names no plugin"):
        select([("code", (item,))])


def test_only_what_is_on_is_imported(audit: Shelf) -> None:
    audit.plugin("beacon", hooks="raise AssertionError('off')")

    activation = activate(PluginRequest(enabled=("audit", "beacon"), env="no:beacon"))

    assert names(activation) == ["audit"]
    assert audit.imported() == {"toy_audit", "toy_audit_hooks", "toy_audit_settings"}
    assert [(r.name, r.status, r.detail) for r in activation.reports] == [
        ("beacon", "disabled", "switched off by environment")
    ]


@pytest.mark.parametrize("item", [7, None, Plugin])
def test_what_is_neither_a_name_nor_a_manifest_is_refused(item: Any) -> None:
    with pytest.raises(ConfigError, match="use names, 'no:name', or"):
        activate(PluginRequest(plugins=(item,)), Catalogue.only())


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"audit": True}, ("INFO", 2)),
        ({"audit": {"level": "DEBUG"}}, ("DEBUG", 2)),
        ({"audit_interval": 3}, ("INFO", 3)),
        ({"audit": True, "audit_interval": 3}, ("INFO", 3)),
        ({"audit_interval": 3, "audit": {"level": "DEBUG"}}, ("DEBUG", 3)),
    ],
)
def test_a_keyword_that_names_a_plugin_switches_it_on_and_configures_it(
    audit: Shelf, keywords: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    activation = activate(PluginRequest(keywords=keywords))

    assert settings(activation) == expected
    assert activation.plugins[0].instances[0].settings is activation.settings["audit"]  # type: ignore[attr-defined]


def test_settings_in_code_win_over_the_file_key_by_key(audit: Shelf) -> None:
    tables = {"audit": Layer("locus.toml", "plugins.audit", {"level": "WARN", "interval": 7})}

    wanted = PluginRequest(tables=tables, keywords={"audit": {"level": "DEBUG"}})

    assert settings(activate(wanted)) == ("DEBUG", 7)


def test_an_instance_of_the_settings_class_is_kept_as_it_is(audit: Shelf) -> None:
    catalogue = Catalogue()
    cls = type(activate(PluginRequest(keywords={"audit": True}), catalogue).settings["audit"])
    tables = {"audit": Layer("locus.toml", "plugins.audit", {"level": "WARN"})}

    activation = activate(PluginRequest(tables=tables, keywords={"audit": cls(interval=9)}), catalogue)
    evolved = activate(PluginRequest(keywords={"audit": cls(level="X"), "audit_interval": 4}), catalogue)

    assert settings(activation) == ("INFO", 9)
    assert settings(evolved) == ("X", 4)
    with pytest.raises(SettingsError, match=r"Agent\(audit_interval=\.\.\.\): interval is 0"):
        activate(PluginRequest(keywords={"audit": cls(), "audit_interval": 0}), catalogue)


def test_false_switches_a_plugin_off(audit: Shelf) -> None:
    activation = activate(PluginRequest(enabled=("audit",), keywords={"audit": False}))

    assert names(activation) == []
    assert [(r.name, r.status, r.detail) for r in activation.reports] == [("audit", "disabled", "switched off by code")]


def test_a_keyword_that_two_plugins_declare_is_an_error_that_names_both(audit: Shelf) -> None:
    audit.plugin("rival", keywords="{'audit_interval': 'x'}")

    with pytest.raises(ConfigError, match="declared by more than one plugin: audit and rival"):
        activate(PluginRequest(keywords={"audit_interval": 3}))


@pytest.mark.parametrize(
    ("value", "message"), [(None, "audit must be True, False"), (7, "audit=7; expected True, False")]
)
def test_a_keyword_with_a_value_that_means_nothing_is_refused(audit: Shelf, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        activate(PluginRequest(keywords={"audit": value}))


def test_the_settings_of_all_plugins_are_complained_about_at_once(audit: Shelf) -> None:
    audit.plugin("beacon", settings="'toy_audit_settings:Settings'")
    tables = {
        "audit": Layer("locus.toml", "plugins.audit", {"levle": 1}),
        "beacon": Layer("locus.toml", "plugins.beacon", {"interval": 0}),
    }

    with pytest.raises(SettingsError) as caught:
        activate(PluginRequest(enabled=("audit", "beacon"), tables=tables, keywords={"audit_interval": "x"}))

    assert caught.value.problems == (
        "locus.toml: plugins.audit.levle is not a setting; did you mean 'level'?",
        "Agent(audit_interval=...): interval is 'x'; expected an integer",
        "locus.toml: plugins.beacon.interval is 0: 'interval' must be >= 1: 0",
    )


def test_a_table_for_a_plugin_that_is_off_is_not_read(audit: Shelf) -> None:
    tables = {"audit": Layer("locus.toml", "plugins.audit", {"levle": 1})}

    assert names(activate(PluginRequest(env="no:audit", tables=tables))) == []


# -- order -----------------------------------------------------------------------------------------


def test_manifests_then_the_configured_list_then_the_name_decide_the_order(shelf: Shelf) -> None:
    for name in ("a", "b", "c", "d", "e"):
        shelf.plugin(name, after="('d',)" if name == "c" else "()")

    activation = activate(
        PluginRequest(enabled=("c", "b"), env="d", plugins=("a",), keywords={"e": True, "b": True}), Catalogue()
    )

    assert names(activation) == ["b", "d", "c", "a", "e"]


def test_a_circle_is_refused_by_name(shelf: Shelf) -> None:
    shelf.plugin("a", after="('b',)")
    shelf.plugin("b", after="('a',)")

    with pytest.raises(PluginError, match="circular: a after b after a"):
        activate(PluginRequest(enabled=("a", "b")))


# -- what cannot be --------------------------------------------------------------------------------

BROKEN = {
    "missing": ("", UnknownName, "missing", "unknown plugin 'broken'"),
    "import": ("raise RuntimeError('no display')", PluginLoadError, "failed", "RuntimeError: no display"),
    "incompatible": (
        "from locus.plugin import Plugin\nplugin = Plugin(name='broken', api=(9, 0), summary='')",
        PluginIncompatible,
        "incompatible",
        "written for plugin API 9.0",
    ),
    "hooks": (
        "from locus.plugin import Plugin\nplugin = Plugin(name='broken', api=(1, 0), summary='', hooks=('toy_gone',))",
        PluginLoadError,
        "failed",
        "toy_gone cannot be imported",
    ),
}


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, shelf: Shelf) -> tuple[type[Exception], str, str]:
    """A plugin that cannot be used: what is raised, its status, and what is said."""
    manifest, error, status, message = BROKEN[request.param]
    if manifest:
        shelf.plugin("broken", manifest=manifest)
    shelf.plugin("good")
    return error, status, message


@pytest.mark.parametrize("wanted", [PluginRequest(enabled=("broken", "good")), PluginRequest(env="broken,good")])
def test_what_the_file_or_the_environment_asks_for_may_fail_and_is_reported(
    broken: tuple[type[Exception], str, str], wanted: PluginRequest
) -> None:
    _, status, message = broken

    activation = activate(wanted)

    assert names(activation) == ["good"]
    (report,) = activation.reports
    assert (report.name, report.status) == ("broken", status)
    assert message in report.detail


@pytest.mark.parametrize(
    "wanted",
    [
        PluginRequest(plugins=("broken",)),
        PluginRequest(cli=("broken",)),
        PluginRequest(required=("broken",)),
        PluginRequest(enabled=("broken",), strict=True),
        PluginRequest(enabled=("broken",), required=("broken",), env="broken"),
    ],
    ids=["code", "command line", "required", "strict", "required and more"],
)
def test_what_is_asked_for_by_name_or_required_must_work(
    broken: tuple[type[Exception], str, str], wanted: PluginRequest
) -> None:
    error, _, message = broken

    with pytest.raises(error) as caught:
        activate(wanted)

    assert message in str(caught.value)


def test_a_guard_that_cannot_run_is_never_left_out_silently(shelf: Shelf) -> None:
    shelf.plugin("door", hooks="raise RuntimeError('no display')", guard="True")

    with pytest.raises(PluginLoadError, match="no display"):
        activate(PluginRequest(enabled=("door",)))


def test_a_guard_whose_hooks_break_the_specification_breaks_the_build(shelf: Shelf) -> None:
    wrong = "from locus.plugin import hookimpl\n@hookimpl\ndef locus_on_thinking(event): ..."
    shelf.plugin("door", hooks=wrong, guard="True")
    shelf.plugin("plain", hooks=wrong)

    plain = HookManager.build(activate(PluginRequest(enabled=("plain",))).plugins)
    assert [r.status for r in plain.reports] == ["failed"]
    with pytest.raises(PluginError, match="locus_on_thinking is not a hook"):
        HookManager.build(activate(PluginRequest(enabled=("door",))).plugins)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class Audit:\n    def __init__(self, a, b): ...", "a hook class is called with the settings, or without"),
        ("class Audit:\n    def __init__(self): raise OSError('disk full')", "cannot be made: OSError: disk full"),
    ],
)
def test_a_hook_object_that_cannot_be_made_is_the_plugins_error(shelf: Shelf, source: str, message: str) -> None:
    shelf.plugin("audit", hooks=source, references="('toy_audit_hooks:Audit',)")

    (report,) = activate(PluginRequest(enabled=("audit",))).reports

    assert message in report.detail


def _manifest(name: str, *hooks: str) -> str:
    return f"from locus.plugin import Plugin\nplugin = Plugin(name={name!r}, api=(1, 0), summary='', hooks={hooks!r})"


def test_a_hook_class_may_refuse_its_settings(shelf: Shelf) -> None:
    source = """
    from locus.core.errors import SettingsError
    class Audit:
        def __init__(self, settings):
            raise SettingsError(["audit: two files are one too many"])
    """
    shelf.plugin("audit", hooks=source, references="('toy_audit_hooks:Audit',)")

    with pytest.raises(SettingsError, match="audit: two files are one too many"):
        activate(PluginRequest(enabled=("audit",)))


def test_hooks_may_be_modules_instances_and_classes_with_or_without_settings(shelf: Shelf) -> None:
    shelf.module(
        "toy_kinds",
        """
        from attrs import frozen
        from locus.plugin import Hook

        class Bare(Hook):
            pass

        @frozen
        class Own(Hook):
            level: str = "own"

        class Optional(Hook):
            def __init__(self, settings=7):
                self.settings = settings

        instance = Bare()
        """,
    )
    shelf.plugin(
        "many", manifest=_manifest("many", *(f"toy_kinds:{n}" for n in ("Bare", "Own", "Optional", "instance")))
    )

    instances: Any = activate(PluginRequest(enabled=("many",))).plugins[0].instances

    assert [type(i).__name__ for i in instances] == ["Bare", "Own", "Optional", "Bare"]
    assert instances[1].level == "own"
    assert instances[2].settings is None


def test_a_hook_class_may_ask_for_what_other_plugins_provide(shelf: Shelf) -> None:
    shelf.module(
        "toy_elsewhere",
        """
        from attrs import frozen

        @frozen
        class Settings:
            zone: str = "here"

        def place(rest, settings):
            return (rest, settings.zone)

        class Files:
            def __init__(self, *, provide):
                self.place = provide("backend", "places:a.db")
        """,
    )
    shelf.plugin("places", settings="'toy_elsewhere:Settings'", provides="{'backend': 'toy_elsewhere:place'}")
    shelf.plugin("files", manifest=_manifest("files", "toy_elsewhere:Files"))
    enabled: Any = {"plugins": ("files",)}

    configured = PluginRequest(**enabled, tables={"places": Layer("locus.toml", "plugins.places", {"zone": "there"})})
    in_code = PluginRequest(**enabled, keywords={"places": {"zone": "code"}})
    made: list[Any] = [
        next(p for p in activate(wanted).plugins if p.manifest.name == "files").instances[0]
        for wanted in (PluginRequest(**enabled), configured, in_code)
    ]

    assert [each.place for each in made] == [("a.db", "here"), ("a.db", "there"), ("a.db", "code")]


def test_what_a_hook_class_asks_for_comes_from_allowed_distributions_only(shelf: Shelf) -> None:
    shelf.module(
        "toy_open", "class Files:\n    def __init__(self, *, provide):\n        provide('backend', 'places:a')"
    )
    shelf.plugin("places", provides="{'backend': 'toy_no:x'}")
    shelf.plugin("files", manifest=_manifest("files", "toy_open:Files"))

    with pytest.raises(PluginLoadError, match="not allowed"):
        activate(PluginRequest(plugins=("files",), allow=("toy-files",)))
