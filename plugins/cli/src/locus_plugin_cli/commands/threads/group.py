"""The group with all of its commands: importing them is what adds them."""

from __future__ import annotations

from locus_plugin_cli.commands.threads import comparing, going_on, maintaining, moving, pruning, show
from locus_plugin_cli.commands.threads.base import threads

__all__ = ["comparing", "going_on", "maintaining", "moving", "pruning", "show", "threads"]
