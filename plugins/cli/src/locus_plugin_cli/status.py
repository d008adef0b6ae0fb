"""The exit statuses, in one place because scripts rely on them."""

from __future__ import annotations

__all__ = ["CLOSED_PIPE", "FAILED", "OK", "STOPPED", "USAGE", "WAITING"]

OK = 0
#: The run failed: the model, a node or a condition raised, the answer is cut, filtered, refused, empty or invalid, or a
#: hook cancelled the run.
FAILED = 1
#: The command line, the configuration, a plugin or the prompt is wrong; nothing was run.
USAGE = 2
#: The run waits for a person's answer, and no person could be asked.
WAITING = 3
#: Ctrl-C: 128 + SIGINT, as shells count.
STOPPED = 130
#: The reader of the output went away: 128 + SIGPIPE, as shells count.
CLOSED_PIPE = 141
