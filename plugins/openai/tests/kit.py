"""The model under test, at a server of the test."""

from __future__ import annotations

from typing import Any

from locus.plugins.secret import Secret
from locus_plugin_openai.model import OpenAIModel, make
from locus_plugin_openai.settings import OpenAISettings

FORMS = ("chat", "responses")
KEY = "sk-test-0123456789abcdef"


def model_at(url: str, form: str = "chat", key: str = KEY, name: str = "gpt-test", **settings: Any) -> OpenAIModel:
    """A model of the server at an address."""
    given = {"api_key": Secret(key) if key else None, "base_url": url, "api": form, "strict": True, **settings}
    return make(name, OpenAISettings(**given))
