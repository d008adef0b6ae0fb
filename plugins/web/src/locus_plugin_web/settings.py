"""The settings of the plugin: the table ``[plugins.web]``."""

from __future__ import annotations

import re

from attrs import Attribute, field, frozen

from locus_kit.validators import integer, optional, seconds, strings, to_tuple
from locus_plugin_web.engines import SearchEngine, SearxngEngine
from locus_wire.headers import find_header_fault

__all__ = ["WebSettings"]

#: A result of a tool has 100,000 characters at most; what is longer would lose its end, and where to read on.
_MOST_CHARS = 90_000
_PLACE = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\s\[\]:/@]+):(\d{1,5})")


def _check_places(_: object, attribute: Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    for each in value:
        found = _PLACE.fullmatch(each)
        if found is None or not 1 <= int(found[1]) <= 65_535:
            raise ValueError(f"{attribute.name} must be hosts with a port, as in '127.0.0.1:8000', got {each!r}")


def _check_search(_: object, attribute: Attribute[object], value: object) -> None:
    if isinstance(value, str):
        SearxngEngine.from_text(value)
    elif not isinstance(value, SearchEngine):
        raise TypeError(f"{attribute.name} must be 'searxng:URL' or a SearchEngine, got {value!r:.100}")


def _check_agent(_: object, attribute: Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value.strip() or find_header_fault("user-agent", value):
        raise ValueError(f"{attribute.name} must be printable ASCII, without line breaks, got {value!r:.100}")


@frozen(kw_only=True)
class WebSettings:
    """What may be fetched, how much of it, and where to search.

    Args:
        search: ``"searxng:https://search.example"``, the address of a SearXNG instance whose settings offer the format
            ``json``, or a `SearchEngine`; None = without the tool ``web_search``.
        allow: hosts with a port that may be reached although they are not public, or not on port 80 or 443, such as
            ``"127.0.0.1:8000"``.
        timeout: seconds that a page may take, redirects and all.
        max_bytes: of a page, unpacked.
        page_chars: characters of a page that the model gets at a time, 200 to 90,000.
        results: how many results of a search it gets.
        robots: whether to follow ``robots.txt``.
        user_agent: what the plugin calls itself; ``robots.txt`` finds it by the name ``locus``.

    Raises:
        ValueError: a number is out of range, a host or a search cannot be understood, or `user_agent` cannot be sent.
    """

    search: str | SearchEngine | None = field(default=None, validator=optional(_check_search))
    allow: tuple[str, ...] = field(default=(), converter=to_tuple, validator=[strings, _check_places])
    timeout: float = field(default=20.0, validator=seconds)
    max_bytes: int = field(default=5_000_000, validator=integer(1))
    page_chars: int = field(default=20_000, validator=integer(200, _MOST_CHARS))
    results: int = field(default=5, validator=integer(1, 20))
    robots: bool = True
    user_agent: str = field(default="locus", validator=_check_agent)
