"""The default rules."""

from __future__ import annotations

from locus_plugin_guardrails.rule import Rule

__all__ = ["DEFAULT_RULES"]

DEFAULT_RULES: tuple[Rule, ...] = (
    Rule(name="email", detector="email"),
    Rule(name="phone", detector="phone"),
    Rule(name="card", detector="card"),
    Rule(name="ssn", detector="ssn"),
    Rule(name="iban", detector="iban"),
    Rule(name="ip", detector="ip"),
    Rule(name="id", detector="id"),
    Rule(name="address", detector="address"),
    Rule(name="key", detector="key", where=("prompt", "result", "answer")),
    # A key in an argument is on its way out.
    Rule(name="key_sent", detector="key", where=("arguments",), action="block"),
    Rule(name="sql", detector="sql", where=("arguments",), action="block", conceal=False),
    Rule(name="shell", detector="shell", where=("arguments",), action="block", conceal=False),
    Rule(name="path", detector="path", where=("arguments",), action="block", conceal=False),
    Rule(name="markup", detector="markup", where=("result", "answer")),
    Rule(name="injection", detector="injection", where=("result",), action="report"),
)
