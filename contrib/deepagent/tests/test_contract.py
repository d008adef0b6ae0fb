"""The manifest keeps the promises of every plugin, and its names are found under the compat paths."""

from __future__ import annotations

import importlib

import locus_deepagent
from locus_deepagent.manifest import plugin
from locus_deepagent.research import keys
from locus_testkit import PluginContract


class TestDeepagent(PluginContract):
    name = "deepagent"


def test_the_compat_paths_have_every_name_of_the_package_and_every_key() -> None:
    public = dict.fromkeys(locus_deepagent.__all__, locus_deepagent)
    public |= {name: keys for name in keys.__all__ if name.startswith("KEY_")}
    paths: dict[str, set[str]] = {}
    for offered in plugin.compat_paths:
        path, _, name = offered.partition(":")
        paths.setdefault(path, set()).add(name)
    assert set.union(*paths.values()) == set(public)
    for path, names in paths.items():
        for name in names:
            assert getattr(importlib.import_module(path), name) is getattr(public[name], name)
