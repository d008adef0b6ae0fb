"""A compat path: names that plugins offer as ``locus.memory`` and below (see `locus.plugins.compat_paths`)."""

from locus.plugins.compat_paths import forward_names

__getattr__, __dir__ = forward_names(__name__)
