"""The promises of any plugin, and the fixed import path."""

from __future__ import annotations

import importlib

from locus_plugin_signals import sender
from locus_plugin_signals.manifest import plugin
from locus_testkit import PluginContract


class TestSignals(PluginContract):
    name = "signals"


def test_the_compat_path_has_the_functions_and_every_name() -> None:
    compat = importlib.import_module("locus.observability.emit")
    names = {name for name in sender.__all__ if name.startswith("EV_")} | {"emit", "emit_sync"}
    assert {name.partition(":")[2] for name in plugin.compat_paths} == names
    for name in names:
        assert getattr(compat, name) is getattr(sender, name)


def test_every_name_has_an_event_whose_type_is_the_name() -> None:
    names = {name: getattr(sender, name) for name in sender.__all__ if name.startswith("EV_")}
    assert set(names.values()) == set(sender.SIGNALS)
    for name, signal in names.items():
        assert signal == name.removeprefix("EV_").lower().replace("_", ".")
        assert sender.SIGNALS[signal].type == signal.replace(".", "_")
