"""What the plugin declares, and what it refuses before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from locus import Agent
from locus.core.errors import ConfigError, SettingsError
from locus_plugin_shell import ShellHook, ShellSettings
from locus_testkit import ScriptedModel


def test_what_the_tool_declares(tmp_path: Path) -> None:
    (made,) = ShellHook(ShellSettings(root=str(tmp_path))).locus_register_tools()
    assert made.name == "execute"
    assert (made.effect, made.targets, made.egress, made.reads) == ("once", ("command",), False, "untrusted")
    assert set(made.spec.properties) == {"command", "timeout"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"root": ""},
        {"memory": 0},
        {"timeout": 0},
        {"processes": 0},
        {"env": ["A=B"]},
        {"output": 10},
        {"memory": True},
        {"sandbox": "docker"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        Agent(ScriptedModel("done"), shell=wrong)


@pytest.mark.parametrize("root", ["/", "~", "~/..", "~/../.."])
def test_the_whole_machine_and_what_holds_the_home_are_refused_as_work_folder(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="root must be a folder for the agent's work"):
        ShellHook(ShellSettings(root=root))
