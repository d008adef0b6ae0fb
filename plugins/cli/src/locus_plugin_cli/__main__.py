"""``python -m locus_plugin_cli`` is ``locus``, for the Python of your choice."""

from __future__ import annotations

from locus_plugin_cli.entry import main

if __name__ == "__main__":
    main()
