"""The command line with the plugin's commands: the fixtures of its own tests, with this plugin among what is seen."""

from plugins.cli.tests.conftest import command_line, environment, here, site, tools, untrusting, warm_server

__all__ = ["environment", "here", "locus", "site", "tools", "untrusting", "warm_server"]

locus = command_line("cli", "conversation", "provenance", "sqlite", "timetravel")
