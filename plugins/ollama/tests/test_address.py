"""The address of the server, in every form that Ollama reads."""

from __future__ import annotations

import pytest

from locus.core.errors import ConfigError
from locus_plugin_ollama.address import address
from locus_plugin_ollama.model import make
from locus_plugin_ollama.settings import OllamaSettings

#: Those of `TestHost` in Ollama's own tests, but that one connects to a machine and not to "all of its addresses".
FORMS = {
    "": "http://127.0.0.1:11434",
    "1.2.3.4": "http://1.2.3.4:11434",
    ":1234": "http://127.0.0.1:1234",
    "1.2.3.4:1234": "http://1.2.3.4:1234",
    "example.com": "http://example.com:11434",
    "example.com:1234": "http://example.com:1234",
    "example.com/": "http://example.com:11434",
    "example.com:56789/path/": "http://example.com:56789/path",
    ":0": "http://127.0.0.1:0",
    ":66000": "http://127.0.0.1:11434",
    ":-1": "http://127.0.0.1:11434",
    "0.0.0.0": "http://127.0.0.1:11434",
    "0.0.0.0:8080": "http://127.0.0.1:8080",
    "[::1]": "http://[::1]:11434",
    "[::]": "http://[::1]:11434",
    "::1": "http://[::1]:11434",
    "[::1]:1337": "http://[::1]:1337",
    " 1.2.3.4 ": "http://1.2.3.4:11434",
    '"1.2.3.4"': "http://1.2.3.4:11434",
    ' " 1.2.3.4 " ': "http://1.2.3.4:11434",
    "'1.2.3.4'": "http://1.2.3.4:11434",
    "http://1.2.3.4": "http://1.2.3.4:80",
    "http://1.2.3.4:4321": "http://1.2.3.4:4321",
    "HTTPS://1.2.3.4": "https://1.2.3.4:443",
    "https://1.2.3.4:4321": "https://1.2.3.4:4321",
    "https://1.2.3.4:66000": "https://1.2.3.4:443",
    "https://example.com/ollama": "https://example.com:443/ollama",
    "https://[0001:002:003:0004::1]:56789/path/": "https://[0001:002:003:0004::1]:56789/path",
    "ollama.com": "https://ollama.com:443",
}


@pytest.mark.parametrize(("text", "url"), FORMS.items())
def test_every_form_of_ollama_host_is_read_as_ollama_reads_it(text: str, url: str) -> None:
    assert address(None, {"OLLAMA_HOST": text}).url == url
    assert address(text, {"OLLAMA_HOST": "elsewhere:1"}).url == url, "the setting has the same forms, and goes first"


def test_without_any_address_the_server_of_this_machine_is_asked() -> None:
    assert address(None, {}).url == "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("text", "here"),
    [("", True), ("localhost", True), ("127.9.9.9", True), ("[::1]", True), ("10.0.0.7", False), ("ollama.com", False)],
)
def test_this_machine_is_distinguished_from_others(text: str, *, here: bool) -> None:
    assert address(text, {}).here is here


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="api_key") as caught:
        address("http://me:geheim@example.com", {})
    assert "geheim" not in str(caught.value)


def test_another_scheme_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ConfigError, match="base_url of ollama"):
        make("qwen3", OllamaSettings(base_url="ftp://example.com"))
