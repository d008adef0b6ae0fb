"""The manifest keeps the promises of every plugin, and the names are found under the compat paths."""

from __future__ import annotations

import importlib

from locus_plugin_filesystem import (
    CompositeBackend,
    FilesystemBackend,
    StateBackend,
    StoreBackend,
    make_filesystem_tools,
)
from locus_testkit import PluginContract


class TestFilesystem(PluginContract):
    name = "filesystem"


def test_the_compat_paths_have_what_their_names_say() -> None:
    backends = importlib.import_module("locus.deepagent.backends")
    for backend in (CompositeBackend, FilesystemBackend, StateBackend, StoreBackend):
        assert getattr(backends, backend.__name__) is backend
    assert importlib.import_module("locus.deepagent.backends.filesystem").FilesystemBackend is FilesystemBackend
    assert importlib.import_module("locus.deepagent.backends.state").StateBackend is StateBackend
    tools = importlib.import_module("locus.deepagent.tools.filesystem")
    assert tools.make_filesystem_tools is make_filesystem_tools
