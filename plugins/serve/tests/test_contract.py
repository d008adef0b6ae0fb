"""The manifest keeps the promises of every plugin, and its names are found under the compat path."""

from __future__ import annotations

import importlib

import locus_plugin_serve
from locus_plugin_serve.manifest import plugin
from locus_testkit import PluginContract


class TestServePlugin(PluginContract):
    name = "serve"


def test_the_compat_path_has_every_name_of_the_package() -> None:
    compat = importlib.import_module("locus.serve")
    for name in locus_plugin_serve.__all__:
        assert getattr(compat, name) is getattr(locus_plugin_serve, name)
    assert {name.partition(":")[2] for name in plugin.compat_paths} == set(locus_plugin_serve.__all__)
