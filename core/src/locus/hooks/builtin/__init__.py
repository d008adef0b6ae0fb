"""A compat path: names that plugins offer as ``locus.hooks.builtin`` (see `locus.plugins.compat_paths`)."""

from locus.plugins.compat_paths import forward_names

__getattr__, __dir__ = forward_names(__name__)
