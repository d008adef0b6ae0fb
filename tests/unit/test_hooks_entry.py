"""What an agent asks of the plugins when it is built, and what it costs when it asks for nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.unit.toy_plugins import Shelf, shelf

from locus.config import Config, load_config
from locus.core.errors import HookSpecError, UnknownName
from locus.hooks.entry import provide, wire
from locus.hooks.hook import Hook
from locus.hooks.settings import Layer
from locus.hooks.table import NO_HOOKS

__all__ = ["shelf"]

HOOKS = """
from locus.plugin import hookimpl

@hookimpl
def locus_on_think(event): ...

@hookimpl
def locus_register_tools():
    return ["a tool"]

@hookimpl
def locus_register_reflect_policies():
    return [len]
"""


@pytest.fixture
def audit(shelf: Shelf) -> Shelf:
    shelf.module("toy_audit_settings", "from attrs import frozen\n@frozen\nclass Settings:\n    level: str = 'INFO'")
    shelf.module("toy_audit_backend", "def make(rest, settings):\n    return (rest, settings.level)")
    shelf.plugin(
        "audit",
        version="1.2",
        hooks=HOOKS,
        settings="'toy_audit_settings:Settings'",
        provides="{'backend': 'toy_audit_backend:make'}",
    )
    return shelf


def test_an_agent_that_asks_for_nothing_gets_the_shared_empty_table() -> None:
    wired = wire()

    assert wired.table is NO_HOOKS
    assert (wired.reports, wired.tools, wired.settings) == ((), (), {})


def test_a_keyword_brings_a_plugin_with_everything_it_contributes(audit: Shelf) -> None:
    class Mine(Hook):
        def on_think(self, ev: Any) -> None: ...

    wired = wire(hooks=[Mine()], keywords={"audit": {"level": "DEBUG"}})

    assert [impl.plugin for impl in wired.table.impls("locus_on_think")] == ["audit", "Mine"]
    assert (wired.tools, wired.reflect_policies) == (("a tool",), (len,))
    assert [(r.name, r.version, r.kind) for r in wired.reports] == [("audit", "1.2", "plugin"), ("Mine", "", "hook")]
    assert wired.settings["audit"].level == "DEBUG"
    assert provide("backend", "audit:x", settings=wired.settings) == ("x", "DEBUG")


def test_a_configuration_stands_below_the_code(audit: Shelf) -> None:
    tables = {
        "audit": Layer("locus.toml", "plugins.audit", {"level": "WARN"}),
        "other": Layer("locus.toml", "plugins.other", {}),
    }
    config = Config(enabled=("audit", "absent"), plugin_settings=tables)  # type: ignore[arg-type]

    wired = wire(config=config)
    off = wire(config=config, keywords={"audit": False})

    assert wired.settings["audit"].level == "WARN"
    assert set(wired.settings) == {"audit", "other"}
    assert [(r.name, r.status) for r in wired.reports] == [("audit", "active"), ("absent", "missing")]
    assert off.table.impls("locus_on_think") == ()


def test_an_empty_configuration_asks_for_nothing(tmp_path: Any) -> None:
    assert wire(config=load_config(start=tmp_path, environ={})).table is NO_HOOKS


def test_what_is_wrong_in_code_is_raised() -> None:
    class Typo(Hook):
        def on_thnik(self, ev: Any) -> None: ...

    with pytest.raises(HookSpecError, match="did you mean 'on_think'"):
        wire(hooks=[Typo()])
    with pytest.raises(UnknownName, match="did you mean 'model'"):
        wire(keywords={"modle": 1}, options=("model",))


PROBE = """
import json, sys
from locus.hooks.entry import wire
before = set(sys.modules)
wire()
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_asking_for_nothing_imports_nothing() -> None:
    path = f"import sys; sys.path[:0] = {sys.path!r}\n"

    done = subprocess.run([sys.executable, "-c", path + PROBE], capture_output=True, text=True, timeout=60, check=True)

    assert json.loads(done.stdout) == []
