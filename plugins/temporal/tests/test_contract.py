"""The plugin keeps the promises of plugins."""

from __future__ import annotations

import locus_plugin_temporal
from locus import temporal
from locus_plugin_temporal.manifest import NAMES
from locus_testkit import PluginContract


class TestTemporal(PluginContract):
    """The installed plugin."""

    name = "temporal"


def test_everything_public_is_under_the_path_of_the_kernel() -> None:
    assert sorted(NAMES) == sorted(locus_plugin_temporal.__all__)
    assert all(getattr(temporal, name) is getattr(locus_plugin_temporal, name) for name in NAMES)
