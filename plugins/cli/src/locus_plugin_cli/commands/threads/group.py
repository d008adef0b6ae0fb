"""The group with all of its commands: importing them is what adds them."""

from __future__ import annotations

from locus_plugin_cli.commands.threads import deletion, maintenance, resuming, retention, show
from locus_plugin_cli.commands.threads.base import threads

__all__ = ["deletion", "maintenance", "resuming", "retention", "show", "threads"]
