"""What the plugin is, readable without importing click or rich."""

from __future__ import annotations

from locus.plugin import Plugin

#: What plugins with commands of their own use of this package, as names of ``locus.cli``.
_OFFERED = {
    "NOT_BLANK": "parameter_types",
    "active_plugins": "project",
    "claim_output": "common_options",
    "confirm": "streams",
    "is_person_present": "approval_prompt",
    "load_provided": "project",
    "make_agent": "commands.threads.base",
    "one_line": "text",
    "open_journals": "commands.threads.base",
    "open_thread": "commands.turn",
    "parse_answers": "approval_prompt",
    "pass_on": "commands.threads.base",
    "print_json": "output",
    "print_lines": "output",
    "print_rows": "output",
    "print_text": "output",
    "read_added": "approval_prompt",
    "read_prompt": "prompt_input",
    "say": "output",
    "settings_of": "project",
    "take_turn": "commands.turn",
    "thread_parameters": "options",
    "turn_parameters": "options",
    "wants_json": "commands.threads.base",
}

plugin = Plugin(
    name="cli",
    api=(1, 0),
    summary="The `locus` command: run, chat, inspect and write plugins from a terminal.",
    compat_paths={f"locus.cli:{name}": f"locus_plugin_cli.{home}:{name}" for name, home in _OFFERED.items()},
)
