"""A journey that takes twelve tools: as a plan, and as the calls that a model makes one after another."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from locus import Agent, AgentResult, Event, tool
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

__all__ = ["ANSWER", "CALLS", "PLAN", "WAVES", "Journey", "asked", "plan", "purposes", "ran", "run", "step"]


T = TypeVar("T")


class Journey:
    """The tools, and what ran of them.

    Args:
        full: bookings of this flight fail.
    """

    def __init__(self, full: str = "") -> None:
        self.full, self.ran = full, list[str]()

    def _did(self, name: str, result: T) -> T:
        self.ran.append(name)
        return result

    def all(self) -> list[Any]:
        return [*self.looking(), *self.booking()]

    def looking(self) -> list[Any]:
        @tool(effect="pure")
        async def city(name: str) -> dict[str, str]:
            """Find a city: its airport."""
            return self._did("city", {"name": name, "airport": "LIS"})

        @tool(effect="pure")
        async def traveller(name: str) -> dict[str, str]:
            """Find a traveller: id, home airport, mail address."""
            return self._did("traveller", {"id": "C-42", "home": "FRA", "mail": "ada@example.org"})

        @tool(effect="pure")
        async def calendar(month: int) -> str:
            """The first free weekend of a month, as a date."""
            return self._did("calendar", f"2026-{month:02}-08")

        @tool(effect="pure")
        async def flights(origin: str, to: str, date: str) -> list[dict[str, Any]]:
            """Find flights, the cheapest first: id, price."""
            return self._did("flights", [{"id": "TP-571", "price": 120}, {"id": "LH-1166", "price": 180}])

        @tool(effect="pure")
        async def hotels(city: str, date: str) -> list[dict[str, Any]]:
            """Find hotels, the cheapest first: id, price."""
            return self._did("hotels", [{"id": "H-7", "price": 80}])

        @tool(effect="pure")
        async def weather(city: str, date: str) -> str:
            """The forecast."""
            return self._did("weather", "sunny, 24 degrees")

        @tool(effect="pure")
        async def concerts(city: str, date: str) -> str:
            """What is on."""
            return self._did("concerts", "Fado at 21:00")

        @tool(effect="pure")
        async def rate(currency: str) -> float:
            """The rate of the euro."""
            return self._did("rate", 1.1)

        return [city, traveller, calendar, flights, hotels, weather, concerts, rate]

    def booking(self) -> list[Any]:
        @tool
        async def book_flight(flight: str, traveller: str) -> str:
            """Book a flight; the booking's number."""
            if flight == self.full:
                raise RuntimeError(f"{flight} is full")
            return self._did("book_flight", f"F-{flight}")

        @tool
        async def book_hotel(hotel: str, traveller: str) -> str:
            """Book a hotel; the booking's number."""
            return self._did("book_hotel", f"B-{hotel}")

        @tool
        async def invoice(flight: str, hotel: str) -> str:
            """Write an invoice on two bookings; its number."""
            return self._did("invoice", f"I({flight}, {hotel})")

        @tool
        async def mail(to: str, text: str) -> str:
            """Send a mail."""
            return self._did("mail", f"sent to {to}")

        return [book_flight, book_hotel, invoice, mail]


def of(name: str, path: str = "") -> dict[str, str]:
    """A reference."""
    return {"$result": name, "path": path} if path else {"$result": name}


def step(name: str, tool: str | None = "", /, **more: Any) -> dict[str, Any]:
    """A step of a plan whose tool has its name, unless another is given."""
    keys = ("decide", "depends_on", "decision_point", "description")
    given: dict[str, Any] = {key: more.pop(key) for key in keys if key in more}
    return {"id": name, "description": name, "tool": name if tool == "" else tool, "arguments": more, **given}


def plan(*steps: dict[str, Any], goal: str = "A weekend in Lisbon.", **more: Any) -> str:
    """A planner's answer."""
    return json.dumps({"goal": goal, "steps": steps, **more})


_THERE = {"city": "Lisbon", "date": of("calendar")}

#: The steps of the journey, by what they wait for.
STEPS = [
    step("city", name="Lisbon"),
    step("traveller", name="Ada"),
    step("calendar", month=5),
    step("flights", origin=of("traveller", "home"), to=of("city", "airport"), date=of("calendar")),
    step("hotels", **_THERE),
    step("weather", **_THERE),
    step("concerts", **_THERE),
    step("rate", currency="USD"),
    step("book_flight", flight=of("flights", "0.id"), traveller=of("traveller", "id")),
    step("book_hotel", hotel=of("hotels", "0.id"), traveller=of("traveller", "id")),
    step("invoice", flight=of("book_flight"), hotel=of("book_hotel")),
    step(
        "mail",
        to=of("traveller", "mail"),
        text={"$join": ["Booked: ", of("book_flight"), " and ", of("book_hotel"), ". ", of("weather")]},
    ),
]
PLAN = plan(*STEPS)

_DAY = "2026-05-08"
#: The same as a model makes them, which reads each result before the next call.
CALLS = [
    call("city", name="Lisbon"),
    call("traveller", name="Ada"),
    call("calendar", month=5),
    call("rate", currency="USD"),
    call("flights", origin="FRA", to="LIS", date=_DAY),
    call("hotels", city="Lisbon", date=_DAY),
    call("weather", city="Lisbon", date=_DAY),
    call("concerts", city="Lisbon", date=_DAY),
    call("book_flight", flight="TP-571", traveller="C-42"),
    call("book_hotel", hotel="H-7", traveller="C-42"),
    call("invoice", flight="F-TP-571", hotel="B-H-7"),
    call("mail", to="ada@example.org", text="Booked: F-TP-571 and B-H-7. sunny, 24 degrees"),
]
#: The same as a model makes them that asks for all it can at once.
WAVES = [CALLS[:4], CALLS[4:8], CALLS[8:10], CALLS[10:]]
ANSWER = "Ada flies to Lisbon on 8 May: F-TP-571, B-H-7."


async def run(model: ScriptedModel, tools: list[Any], **options: Any) -> tuple[AgentResult[Any], list[Event]]:
    one = Agent(model, tools=tools, **options).run("Plan a weekend in Lisbon for Ada, in May.", thread_id="t")
    events = [event async for event in one]
    return one.result, events


def purposes(model: ScriptedModel) -> list[str]:
    """What each call of a model was for."""
    return [request.purpose for request in model.requests]


def asked(request: ModelRequest) -> Any:
    """The document that a planner or an executor was shown."""
    return json.loads(request.messages[1].text)


def ran(result: AgentResult[Any]) -> set[tuple[str, str, str | None]]:
    """The calls of a run with their results, in no order."""
    return {
        (e.tool_name, json.dumps(dict(e.arguments), sort_keys=True), e.result) for e in result.state.tool_executions
    }
