"""Choosing the provider loads its own stack and nothing else."""

from __future__ import annotations

from locus_testkit.imports import modules_imported_by


def test_the_provider_loads_less_than_twice_what_its_http_client_loads() -> None:
    client, own = modules_imported_by("httpx2"), modules_imported_by("locus_plugin_ollama.model")

    assert len(own) < 2 * len(client), sorted(own - client)
    assert {name.partition(".")[0] for name in own}.isdisjoint({"ollama", "httpx", "pydantic", "openai", "trio"})


def test_settings_load_no_http_client() -> None:
    assert "httpx2" not in modules_imported_by("locus_plugin_ollama.settings")
