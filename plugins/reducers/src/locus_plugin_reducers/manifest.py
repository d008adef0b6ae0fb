"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = (
    *("Reducer", "add_messages", "add_numbers", "append_list", "deep_merge_dict", "first_value", "last_value"),
    *("max_value", "merge_dict", "min_value", "set_union", "unique_append_list"),
)

plugin = Plugin(
    name="reducers",
    api=(1, 0),
    summary="Merges what parallel branches of a graph made of one field: messages, mappings, lists, numbers, sets.",
    compat_paths={f"locus.core.reducers:{name}": f"locus_plugin_reducers:{name}" for name in _NAMES},
)
