"""The group of these commands: the command line merges it into its own of the same name."""

from __future__ import annotations

import click

from locus_plugin_timetravel.commands.comparison import diff, replay
from locus_plugin_timetravel.commands.copying import copy
from locus_plugin_timetravel.commands.forking import fork
from locus_plugin_timetravel.commands.transfer import export, import_

__all__ = ["threads"]

threads = click.Group("threads", commands=[copy, diff, export, fork, import_, replay])
