"""What choosing this provider costs before the first request."""

from __future__ import annotations

from locus_testkit.imports import modules_imported_by


def test_import_brings_less_than_twice_an_http_client() -> None:
    assert len(modules_imported_by("locus_plugin_anthropic.model")) < 2 * len(modules_imported_by("httpx2"))
