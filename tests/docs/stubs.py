"""Compares the ``pyi`` blocks of the documents, which show signatures, with the code that they are about."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import attrs

from locus.hooks.specs import HOOKS

#: Where names in stubs are looked up, beside the hooks.
MODULES = (
    "locus",
    "locus.plugin",
    "locus.config",
    "locus.agent",
    "locus.core.executions",
    "locus.core.journal",
    "locus.core.messages",
    "locus.core.protocols",
    "locus.core.state",
    "locus.core.termination",
    "locus.plugins.report",
    "locus.journal",
    "locus.journal.effects",
    "locus_plugin_conversation",
    "locus_wire",
    "locus.journal.history",
    "locus.journal.store",
    "locus.models",
    "locus.models.output",
    "locus.models.protocol",
    "locus.threads",
    "locus.tools",
    "locus_plugin_timetravel",
    "locus_plugin_viewer",
    "locus_plugin_worker",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def differences(stub: str) -> list[str]:
    """What a stub says otherwise than the code; each line names the place.

    A class is complete, every public member of its own, unless its body ends with ``...``.
    """
    found: list[str] = []
    for node in ast.parse(stub).body:
        assert isinstance(node, Function | ast.ClassDef), f"a stub holds functions and classes, not {ast.dump(node)}"
        real = lookup(node.name)
        if isinstance(node, ast.ClassDef):
            assert isinstance(real, type), f"{node.name} is no class"
            found += _of_class(node, real)
        elif _line(node) != _line(_source(real)):
            found.append(f"written: {_line(node)}\nin code: {_line(_source(real))}")
    return found


def lookup(name: str) -> Any:
    """What a name in a stub stands for."""
    if name in HOOKS:
        return HOOKS[name].function
    return _index()[name]


@cache
def _index() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in map(importlib.import_module, MODULES):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        found.update({name: getattr(module, name) for name in names})
    return found


def _source(real: Callable[..., Any]) -> Function:
    node = ast.parse(textwrap.dedent(inspect.getsource(real))).body[0]
    assert isinstance(node, Function)
    return node


def _of_class(stub: ast.ClassDef, real: type) -> Iterator[str]:
    written, known = dict(_members(stub.body, None)), dict(_members(_body(real), real))
    last = stub.body[-1]
    partial = isinstance(last, ast.Expr) and len(stub.body) > 1
    for name in sorted(written.keys() - known.keys()):
        yield f"{stub.name} has no {written[name]}"
    for name in sorted(known.keys() - written.keys()):
        if not partial:
            yield f"{stub.name} lacks {known[name]}"
    for name in sorted(known.keys() & written.keys()):
        if known[name] != written[name]:
            yield f"{stub.name}, written: {written[name]}\n{stub.name}, in code: {known[name]}"
    for name, value in _literals(stub.body):
        default = getattr(attrs.fields_dict(real).get(name), "default", None) if attrs.has(real) else None
        if name in known and value != default:
            yield f"{stub.name}.{name} is written with {value!r}; its default is {default!r}"


def _body(real: type) -> list[ast.stmt]:
    node = ast.parse(textwrap.dedent(inspect.getsource(real))).body[0]
    assert isinstance(node, ast.ClassDef)
    return node.body


def _members(body: list[ast.stmt], real: type | None) -> Iterator[tuple[str, str]]:
    """The public members by name, each on one line."""
    for node in body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            if not any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list):
                yield node.name, _line(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            if name.startswith("_") or "ClassVar" in ast.unparse(node.annotation):
                continue
            if real is not None and attrs.has(real):
                field = attrs.fields_dict(real)[name]
                if not field.init:
                    continue
                has_default = field.default is not attrs.NOTHING
            else:
                has_default = node.value is not None
            yield name, f"{name}: {ast.unparse(node.annotation)}{' = ...' if has_default else ''}"


def _literals(body: list[ast.stmt]) -> Iterator[tuple[str, Any]]:
    """The fields whose default is written down as a literal."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue  # an expression
            if value is not ...:
                yield node.target.id, value


def _line(node: Function) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{'@property ' if is_property else ''}{kind} {node.name}({ast.unparse(node.args)}){returns}"


def drawn(name: str) -> str:
    """The stub of a name, as a document would show it: what to paste when `differences` finds some."""
    real = lookup(name)
    if not isinstance(real, type):
        return f"{_line(_source(real))}: ..."
    lines = [f"class {name}:"]
    for line in dict(_members(_body(real), real)).values():
        if line.startswith("@property "):
            lines += ["    @property", f"    {line.removeprefix('@property ')}: ..."]
        else:
            lines.append(f"    {line}{': ...' if line.endswith(')') or 'def ' in line else ''}")
    return "\n".join(lines)
