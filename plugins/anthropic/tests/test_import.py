"""What choosing this provider costs before the first request."""

from __future__ import annotations

from locus_testkit.imports import brought_by


def test_import_brings_less_than_twice_an_http_client() -> None:
    assert len(brought_by("locus_plugin_anthropic.model")) < 2 * len(brought_by("httpx2"))
