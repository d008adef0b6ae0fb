"""The command line, as its own tests run it."""

from __future__ import annotations

from plugins.cli.tests.conftest import environment, here, process, site, warm_server

__all__ = ["environment", "here", "process", "site", "warm_server"]
