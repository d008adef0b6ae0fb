"""A window: the names that installed plugins offer as ``locus.reasoning`` (see `locus.hooks.windows`)."""

from locus.hooks.windows import open_window

__getattr__, __dir__ = open_window(__name__)
