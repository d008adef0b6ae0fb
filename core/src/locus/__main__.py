"""``python -m locus``: the command ``locus`` of whichever installed distribution has it, in this Python."""

import sys

import importlib_metadata

_NAME = "locus"


def main() -> int:
    """Run the installed console script and return its exit status, or 2 if no script is installed."""
    for script in importlib_metadata.entry_points(group="console_scripts", name=_NAME):
        return int(script.load()() or 0)
    sys.stderr.write(
        f"{_NAME}: no package in {sys.prefix} provides the command '{_NAME}'; install the plugin that does, "
        "from the table of plugins in the README of Locus\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
