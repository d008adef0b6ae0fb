"""A hundred tools, an agent that has them, and what its model was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from locus import Agent, tool
from locus.models import ModelRequest
from locus.plugins.discovery import Catalogue
from locus.tools import ToolSpec
from locus_plugin_toolsearch.manifest import plugin
from locus_testkit import InterceptedStore, ScriptedModel, SimulatedCrash

__all__ = [
    "INSTALLED",
    "ROWS",
    "Row",
    "SimulatedCrash",
    "agent",
    "dying",
    "is_prefix",
    "made",
    "sent",
    "specs",
    "tools",
    "until_it_dies",
]

INSTALLED = Catalogue.only(plugin)


@frozen
class Row:
    """A tool, a query in its words, and one that avoids them."""

    name: str
    description: str
    plain: str
    paraphrase: str


_DATA = Path(__file__).parent / "data" / "tools.tsv"
ROWS = [Row(*line.split("\t")) for line in _DATA.read_text(encoding="utf-8").splitlines()[1:]]


def made(name: str, description: str) -> Any:
    @tool(name=name, description=description, effect="pure")
    async def body(about: str = "") -> str:
        return f"{name} did {about or 'it'}"

    return body


_TOOLS = [made(row.name, row.description) for row in ROWS]


def tools(count: int = 100) -> list[Any]:
    return _TOOLS[:count]


def specs(count: int = 100) -> tuple[ToolSpec, ...]:
    return tuple(each.spec for each in tools(count))


def agent(model: ScriptedModel, count: int = 100, **options: Any) -> Agent[Any, str]:
    return Agent(model, tools=tools(count), **{"catalogue": INSTALLED, "toolsearch": True, **options})


def sent(requests: Iterable[ModelRequest]) -> list[list[str]]:
    """The names of the tools of each request of Think."""
    return [[spec.name for spec in request.tools] for request in requests if request.purpose == "think"]


def is_prefix(one: list[str], other: list[str]) -> bool:
    return other[: len(one)] == one


async def until_it_dies(run: Awaitable[Any]) -> bool:
    """Whether the process died on the way."""
    try:
        await run
    except SimulatedCrash:
        return True
    except BaseExceptionGroup as e:  # it died beside other calls of the turn
        if e.split(SimulatedCrash)[1] is not None:
            raise
        return True
    return False


def dying(at: int = 0, *, stored: bool = True) -> InterceptedStore:
    """A store whose process dies in one of its writes, before or after that write is stored; 0 = never."""
    writes = [0]

    def die(*_: object) -> None:
        writes[0] += 1
        if writes[0] == at:
            raise SimulatedCrash

    return InterceptedStore(after={"append": die}) if stored else InterceptedStore({"append": die})
