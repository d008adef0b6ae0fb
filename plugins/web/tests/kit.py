"""What the tests share: fetchers for the local site, and names that resolve to what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_plugin_web import Fetcher, WebSettings
from locus_testkit.site import LocalSite

__all__ = ["Names", "fetcher_for"]


class Names:
    """A resolver with a table; of several answers for a name, each is given once, the last one from then on."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        #: The names that were asked for, in order.
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        left = self.answers.get(host)
        if left is None:
            return [host] if host.replace(".", "").isdecimal() or ":" in host else []
        return left.pop(0) if len(left) > 1 else left[0]


def fetcher_for(site: LocalSite, names: Names | None = None, **settings: Any) -> Fetcher:
    """A fetcher that may reach a site, and that knows the names of a table."""
    settings.setdefault("allow", (site.address,))
    return Fetcher(WebSettings(**settings), resolve=names or Names())
