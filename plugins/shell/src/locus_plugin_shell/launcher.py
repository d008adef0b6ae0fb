"""Runs one command in a sandbox: a program of its own, which imports the standard library and its two ways alone.

The launcher is a child of the program that runs the agent. It ends when its standard input does, which the program
holds open: a program that was killed closes it. What the command writes goes to standard output; on standard error is
one line of JSON that says how it ended.
"""

from __future__ import annotations

import json
import os
import sys
import types

__all__ = ["main"]

if __name__ == "__main__":
    # Modules beside this one are imported by their full names, but without the package's own `__init__`: it needs
    # what an interpreter without site-packages does not have, and would take longer than most commands.
    sys.modules["locus_plugin_shell"] = types.ModuleType("locus_plugin_shell")
    sys.modules["locus_plugin_shell"].__path__ = [os.path.dirname(os.path.abspath(__file__))]

from locus_plugin_shell import bwrap, unshare
from locus_plugin_shell.bounds import CallerGone, SetupError


def main() -> None:
    """Run the command that is the second argument, as the first one says in JSON, in the environment of this process.

    Every user of the machine can read arguments; the environment is read by the user who runs this alone.
    """
    # In JSON it would be up to six times as long, and the kernel limits the length of an argument.
    wanted = json.loads(sys.argv[1]) | {"command": sys.argv[2]}
    run = bwrap.run if wanted["bwrap"] else unshare.run
    try:
        report = run(wanted, os.getppid())
    except CallerGone:
        return
    except (OSError, SetupError) as e:
        report = {"failed": str(e)}
    os.write(2, json.dumps(report).encode())


if __name__ == "__main__":
    main()
