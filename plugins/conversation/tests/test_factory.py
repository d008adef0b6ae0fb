"""Managers by name, as configuration files have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus import Agent
from locus.config import load_config
from locus.core.errors import ConfigError
from locus_plugin_conversation import LLMCompactor, SlidingWindowManager, SummarizingManager
from locus_plugin_conversation.factory import make
from locus_plugin_conversation.settings import ConversationSettings
from locus_testkit import ScriptedModel


@pytest.mark.parametrize(
    ("text", "manager"),
    [
        ("compact", LLMCompactor()),
        ("compact:9000", LLMCompactor(window=9000)),
        ("summary:40", SummarizingManager(40)),
        ("window", SlidingWindowManager(30, slack=3)),
        ("window:8", SlidingWindowManager(8, slack=3)),
    ],
)
def test_name_makes_the_manager(text: str, manager: object) -> None:
    assert make(text, ConversationSettings(max_messages=30, slack=3)) == manager


@pytest.mark.parametrize("text", ["", "windwo", "summary", "compact:much", "window:0", "compact:-1"])
def test_another_name_is_an_error_that_has_it(text: str) -> None:
    with pytest.raises(ConfigError, match=f"conversation:{text}|got '{text}'"):
        make(text, ConversationSettings())


def test_configuration_gives_an_agent_its_manager(tmp_path: Path) -> None:
    file = tmp_path / "locus.toml"
    file.write_text('[agent]\nconversation = "conversation:window:8"\n')

    config = load_config(file)

    assert Agent(ScriptedModel("x"), config=config).runtime.manager == SlidingWindowManager(8)
    own = SlidingWindowManager(4)
    assert Agent(ScriptedModel("x"), config=config, conversation_manager=own).runtime.manager is own
    file.write_text('[agent]\nconversation = "none"\n')
    assert Agent(ScriptedModel("x"), config=load_config(file)).runtime.manager is None
