"""How many tool tasks the embedded model solves: through the plugin, and asked as the bare engine is.

    nice python contrib/bench/embedded.py plugin
    nice python contrib/bench/embedded.py engine --model qwen2.5-coder-0.5b --only 'dep'

`plugin`: `LlamaCppModel`, as an agent asks it, with tools that have no examples of their own. `engine`: the same
weights and runtime in a bare loop: a system prompt with a line a tool, three worked examples with other tools, decoding
constrained to the schemas of the tools, and a tool less on offer when a call is repeated. It is the loop that the model
was chosen with.

A task is solved when every read that it takes was made, its effects are exactly those wanted, in any order, and the
answer holds the facts. A call with a side effect that was not wanted is a failure, as is one that is made twice.
Decoding is greedy, so a run repeats on one machine. `--set development` runs the tasks that prompts and examples were
made with.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import anyio

from locus.core.messages import Message, Role, ToolResult
from locus.models import ModelRequest, ModelSettings
from locus.tools import ToolSpec
from locus_plugin_llamacpp.model import make
from locus_plugin_llamacpp.runtime import EngineOptions, start
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_plugin_llamacpp.weights import find, parse

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins" / "llamacpp" / "tests"))
from evaluation import arithmetic

DATA = json.loads(Path(__file__).with_name("data").joinpath("embedded.json").read_text("utf-8"))
TEMPLATE = resources.files("locus_plugin_llamacpp").joinpath("templates", "chatml.jinja").read_text("utf-8")
MAX_TURNS, MAX_TOKENS = 8, 160
KINDS = ("one", "two", "dependent", "none")

FINAL = "submit_answer"
SYSTEM = (
    "You solve the task of the user with tools. Each turn reply with one JSON object: "
    '{"tool": NAME, "args": {...}}. Call one tool at a time and use its result in the next call. '
    "Copy names, ids and numbers exactly. Do not repeat a call. As soon as you know the answer, "
    "or when no tool is needed, call submit_answer.\nTools:\n"
)
FINAL_LINE = f"- {FINAL}(answer: the answer): Give the final answer to the user and stop."
SHOWN = (
    (
        "Which time is it in Lima?",
        '{"tool": "get_time", "args": {"city": "Lima"}}',
        "Result: 14:05",
        '{"tool": "submit_answer", "args": {"answer": "It is 14:05 in Lima."}}',
    ),
    (
        "Send the phone number of Rosa Diaz to sam@x.org",
        '{"tool": "find_contact", "args": {"name": "Rosa Diaz"}}',
        'Result: {"name": "Rosa Diaz", "phone": "555-0199"}',
        '{"tool": "send_mail", "args": {"to": "sam@x.org", "text": "Rosa Diaz: 555-0199"}}',
        "Result: sent",
        '{"tool": "submit_answer", "args": {"answer": "I sent 555-0199 to sam@x.org."}}',
    ),
    ("Hi!", '{"tool": "submit_answer", "args": {"answer": "Hello! How can I help you?"}}'),
)

Calls = list[tuple[str, Mapping[str, Any]]]


def run(world: Mapping[str, Any], name: str, given: Mapping[str, Any]) -> str:
    """What a tool returns; a wrong argument is a result that the model must live with."""
    text = {key: str(value).strip() for key, value in given.items()}

    def look(table: str, key: str) -> str:
        rows = world[table]
        found = rows.get(key, rows.get(key.lower(), rows.get(key.lower().removesuffix("s"))))
        return f"error: {key!r} is unknown" if found is None else found if isinstance(found, str) else json.dumps(found)

    try:
        match name:
            case "find_customer":
                return look("customers", text["name"])
            case "list_orders":
                return look("orders", text["customer_id"])
            case "get_stock":
                return look("stock", text["item"])
            case "get_price":
                return look("prices", text["item"])
            case "track_parcel":
                return look("parcels", text["parcel_id"])
            case "list_rooms":
                return look("rooms", text["day"])
            case "find_member":
                return look("members", text["name"])
            case "list_loans":
                return look("loans", text["member_id"])
            case "find_shelf":
                return look("shelves", text["title"])
            case "get_fee":
                return "0.30"
            case "calculate":
                return str(arithmetic(text["expression"]))
    except (KeyError, ValueError) as e:
        return f"error: {type(e).__name__} {e}"
    return "done"


def is_wanted(wanted: tuple[str, Mapping[str, str]], made: tuple[str, Mapping[str, Any]]) -> bool:
    """Whether a call is one of those that a task takes; ``*`` before a value: it holds that."""
    if wanted[0] != made[0]:
        return False
    for name, value in wanted[1].items():
        found = str(made[1].get(name, "")).strip().lower()
        if value.startswith("*"):
            right = value[1:].lower() in found
        else:
            right = value.lower() in (found, found.removesuffix("s"))
        if not right:
            return False
    return True


def is_solved(case: Mapping[str, Any], calls: Calls, answer: str | None, effects: frozenset[str]) -> bool:
    wanted = [tuple(each) for each in case.get("effects", ())]
    made = [call for call in calls if call[0] in effects]
    if answer is None or len(made) != len(wanted):
        return False
    for each in wanted:
        at = next((i for i, call in enumerate(made) if is_wanted(each, call)), None)
        if at is None:
            return False
        del made[at]
    if case["kind"] == "none" and calls:
        return False
    reads = all(any(is_wanted(tuple(each), call) for call in calls) for each in case.get("reads", ()))
    said = answer.lower()
    return reads and all(any(fact.lower() in said for fact in facts) for facts in case["answers"])


def schema(parameters: Mapping[str, str]) -> dict[str, Any]:
    properties = {
        name: {"type": "string", "description": about, "maxLength": 200} for name, about in parameters.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


async def by_plugin(given: argparse.Namespace, tools: list[Any]) -> Callable[[str, Callable[..., str]], Any]:
    model = make(given.model, LlamaCppSettings(threads=given.threads))
    await model.prepare()
    specs = tuple(
        ToolSpec(name=t["name"], description=t["description"], parameters=schema(t["parameters"])) for t in tools
    )

    async def solve(prompt: str, body: Callable[..., str]) -> tuple[Calls, str | None]:
        messages, calls = [Message(Role.USER, prompt)], Calls()
        for _ in range(MAX_TURNS):
            request = ModelRequest(messages=tuple(messages), tools=specs, settings=ModelSettings(max_tokens=MAX_TOKENS))
            said = (await model.complete(request)).message
            messages.append(said)
            if not said.tool_calls:
                return calls, said.text
            for call in said.tool_calls:
                calls.append((call.name, call.arguments))
                messages.append(
                    Message(Role.TOOL, ToolResult(call.id, body(call.name, call.arguments), name=call.name))
                )
        return calls, None

    return solve


async def by_engine(given: argparse.Namespace, tools: list[Any]) -> Callable[[str, Callable[..., str]], Any]:
    options = EngineOptions(threads=given.threads, template=TEMPLATE)
    server = start(find(parse(given.model)), options)
    lines = [
        f"- {t['name']}({', '.join(f'{k}: {v}' for k, v in t['parameters'].items())}): {t['description']}"
        for t in tools
    ]
    head = [{"role": "system", "content": SYSTEM + "\n".join([*lines, FINAL_LINE])}]
    for asked, *turns in SHOWN:
        head.append({"role": "user", "content": asked})
        head += [{"role": "user" if i % 2 else "assistant", "content": text} for i, text in enumerate(turns)]
    schemas = {t["name"]: schema(t["parameters"]) for t in tools} | {FINAL: schema({"answer": "the answer"})}

    def ask(messages: list[dict[str, str]], names: Collection[str]) -> str:
        turns = [
            schema({}) | {"properties": {"tool": {"const": name}, "args": schemas[name]}, "required": ["tool", "args"]}
            for name in names
        ]
        body = {
            "messages": [*head, *messages],
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
            "json_schema": {"anyOf": turns},
        }
        return str(server.handle_chat_completions(body)["choices"][0]["message"]["content"])

    async def solve(prompt: str, body: Callable[..., str]) -> tuple[Calls, str | None]:
        messages, calls = [{"role": "user", "content": prompt}], Calls()
        for _ in range(MAX_TURNS):
            names = list(schemas)
            while True:
                said = ask(messages, names)
                try:
                    turn = json.loads(said)
                except ValueError:  # cut
                    return calls, None
                name, arguments = turn["tool"], turn["args"]
                if name == FINAL or (name, arguments) not in calls:
                    break
                names.remove(name)
            messages.append({"role": "assistant", "content": said})
            if name == FINAL:
                return calls, arguments["answer"]
            calls.append((name, arguments))
            messages.append({"role": "user", "content": f"Result: {body(name, arguments)}"})
        return calls, None

    return solve


async def main(given: argparse.Namespace) -> None:
    prefix = "development_" if given.set == "development" else ""
    tools, world = DATA[f"{prefix}tools"], DATA[f"{prefix}world"]
    effects = frozenset(t["name"] for t in tools if t.get("effect"))
    solve = await {"plugin": by_plugin, "engine": by_engine}[given.through](given, tools)
    solved, of, seconds = Counter[str](), Counter[str](), 0.0
    for case in DATA[given.set]:
        if given.only and not re.match(given.only, case["id"]):
            continue
        began = time.perf_counter()
        calls, answer = await solve(case["prompt"], lambda name, arguments: run(world, name, arguments))
        seconds += time.perf_counter() - began
        right = is_solved(case, calls, answer, effects)
        of[case["kind"]] += 1
        solved[case["kind"]] += right
        print("ok" if right else "NO", case["id"], json.dumps(calls), "=>", " ".join((answer or "-").split())[:100])
        sys.stdout.flush()
    kinds = ", ".join(f"{kind} {solved[kind]}/{of[kind]}" for kind in KINDS)
    total = f"{solved.total()} of {of.total()} ({kinds})"
    print(f"{given.through} {given.model}: {total}; {seconds / of.total():.1f} s a task")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("through", choices=["plugin", "engine"])
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="what follows llamacpp:")
    parser.add_argument("--set", choices=["held_out", "development"], default="held_out")
    parser.add_argument("--only", help="a pattern that the ids of the tasks start with")
    parser.add_argument("--threads", type=int, help="default: as the plugin chooses")
    anyio.run(main, parser.parse_args())
