"""Rules and settings: data that is checked when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ConfigError
from locus.core.errors import SettingsError
from locus.plugins.settings import Layer, structure
from locus_plugin_guardrails import DEFAULT_RULES, GuardrailsSettings, Rule, Topics
from locus_plugin_guardrails.scanner import Scanner
from locus_testkit import ScriptedModel


def rewritten(settings: GuardrailsSettings, text: str, tool: str = "") -> str:
    scanner = Scanner(settings.in_force)
    return scanner.rewritten(text, scanner.regions(scanner.findings(text, "arguments" if tool else "prompt", tool)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "x"}, "exactly one"),
        ({"name": "x", "pattern": "a", "words": ["b"]}, "exactly one"),
        ({"name": "X!", "pattern": "a"}, "lower-case"),
        ({"name": "x", "pattern": "(a"}, "refused"),
        ({"name": "x", "pattern": "(?<=a)b"}, "look-around"),
        ({"name": "x", "pattern": r"(a)\1"}, "back-references"),
        ({"name": "x", "detector": "mail"}, "detector must be one of .*, got 'mail'"),
        ({"name": "x", "pattern": "a", "where": []}, "one or more"),
        ({"name": "x", "words": [" "]}, "empty word"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        structure(GuardrailsSettings, [Layer("the test", "", {"rules": [wrong]})])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rules": [{"name": "x", "pattern": "a", "action": "delete"}]}, "'report', 'redact', 'block'"),
        ({"without": ["e-mail"]}, "unknown default rule 'e-mail'"),
        ({"max_result": 0}, "1 or more"),
        ({"rules": [{"name": "x", "pattern": "a"}, {"name": "x", "pattern": "b"}]}, "more than one rule is named 'x'"),
        ({"rules": [{"name": "size", "pattern": "a"}]}, "'size'"),
        ({"topics": {"deny": {"email": ["x"]}}}, "'email'"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Agent(ScriptedModel(), guardrails=wrong)


def test_a_rule_of_ones_own_is_added_to_the_defaults_or_replaces_one() -> None:
    mine = GuardrailsSettings(rules=[Rule(name="project", pattern=r"PRJ-\d{4}")])
    assert rewritten(mine, "PRJ-1234 of a@b.example") == "[redacted: project] of [redacted: email]"
    other = GuardrailsSettings(rules=[Rule(name="email", pattern="@internal")])
    assert rewritten(other, "a@b.example @internal") == "a@b.example [redacted: email]"
    assert {r.name for r in GuardrailsSettings(without=["ip"]).in_force} == {r.name for r in DEFAULT_RULES} - {"ip"}


def test_words_are_whole_in_any_case_and_writing() -> None:
    mine = GuardrailsSettings(rules=[Rule(name="code", words=["Blue Moon", "Кит", "übung"])], without=["email"])
    assert rewritten(mine, "the BLUE  moon, blue moons") == "the [redacted: code], blue moons"
    assert rewritten(mine, "b\u200blue moon") == "[redacted: code]"
    assert rewritten(mine, "КИТ и Übung u\u0308bung") == "[redacted: code] и [redacted: code] [redacted: code]"


def test_a_rule_for_some_tools_leaves_the_others_alone() -> None:
    mine = GuardrailsSettings(rules=[Rule(name="word", words=["hush"], tools=["send_*"])])
    assert rewritten(mine, "hush", "send_mail") == "[redacted: word]"
    assert rewritten(mine, "hush", "read_mail") == "hush"


def test_what_overlaps_is_cut_out_as_one_and_named_by_the_strictest_rule() -> None:
    rules = [Rule(name="a", pattern="xyz"), Rule(name="b", pattern="yzw", action="block"), Rule(name="c", pattern="q")]
    assert rewritten(GuardrailsSettings(rules=rules), "-xyzw-q") == "-[blocked: b]-[redacted: c]"


def test_the_table_of_a_file_is_read() -> None:
    table = {
        "without": ["ip"],
        "topics": {"allow": {"weather": ["rain"]}, "deny": {"arms": ["gun"]}, "where": ["prompt"]},
        "rules": [{"name": "x", "words": ["y"], "where": ["answer"], "action": "block", "tools": ["t"]}],
    }
    read = structure(GuardrailsSettings, [Layer("the test", "", table)])
    assert read == GuardrailsSettings(
        without=["ip"],
        topics=Topics(allow={"weather": ["rain"]}, deny={"arms": ["gun"]}, where=["prompt"]),
        rules=[Rule(name="x", words=["y"], where=["answer"], action="block", tools=["t"])],
    )
