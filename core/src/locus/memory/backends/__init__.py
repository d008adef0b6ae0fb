"""A window: the names that installed plugins offer as ``locus.memory.backends`` (see `locus.plugins.compat_paths`)."""

from locus.plugins.compat_paths import open_window

__getattr__, __dir__ = open_window(__name__)
