"""The reference as Markdown, made from the code: what is public, hooked into, emitted, raised, set and typed."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import attrs
import click
import importlib_metadata
from docstring_parser import DocstringStyle, parse
from tests.public_api import MODULES

from locus.core import errors, events
from locus.core.errors import LocusError
from locus.core.events import Event, event_types
from locus.hooks.specs import HOOKS, HookInfo
from locus.plugin import Plugin
from locus.plugins.discovery import GROUP
from locus.plugins.manifest import resolve
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.lazy import Root
from locus_plugin_cli.main import root

__all__ = ["names", "pages"]

#: What each family of hooks is, and when its hooks are called: a section of the docstring of the specifications.
_FAMILIES = ("register", "check", "session", "observe", "decide", "review", "wrap", "node", "result")

#: Constants that have no comment where they are defined.
_CONSTANTS = {
    "locus.core.EMPTY": "The frozen mapping without entries.",
    "locus.core.journal.Body": "What an entry of a journal holds.",
    "locus.core.messages.Block": "A part of the content of a message.",
    "locus.journal.listing.NEW": "The progress of a thread that has not run.",
    "locus.loop.NodeFunction": "A node of the loop: from a state to the state after it.",
    "locus.models.OnChunk": "Called with each piece of a streamed answer.",
    "locus.plugin.Decision": "What a decider about a tool call answers; None is `Allow()`.",
    "locus.plugin.Directive": "What an observer answers; None is `Continue()`.",
    "locus.plugin.Verdict": "What a reviewer of an answer says; None is `Accept()`.",
    "locus.plugin.hookimpl": "Marks a function, or a method, as the implementation of the hook of its name.",
    "locus.schema.Schema": "A JSON Schema.",
    "locus.tools.Effect": "What a crash in a tool's body means, see [effects](../explanation/effects.md).",
}
#: Where an object lies in memory.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def pages() -> dict[str, str]:
    """Every page of the reference by its path below the folder of pages."""
    made = {
        "reference/hooks.md": _hooks(),
        "reference/events.md": _events(),
        "reference/errors.md": _errors(),
        "reference/settings.md": _settings(),
        "reference/commands.md": _commands(),
    }
    made |= {f"reference/{module}.md": _module(module) for module in MODULES}
    return {"reference/index.md": _index(), **made}


# --- modules -------------------------------------------------------------------------------------


@cache
def names() -> dict[str, str]:
    """Each public name, such as ``"locus.Agent"``, and the one of its names under which it is described."""
    found: dict[str, str] = {}
    described: dict[int, str] = {}
    # The facades last: a name is described in its own module, and only named where it is offered again.
    for module in sorted(MODULES, key=lambda name: (-name.count("."), name)):
        offered = importlib.import_module(module)
        for name in offered.__all__:
            value, path = getattr(offered, name), f"{module}.{name}"
            found[path] = path if isinstance(value, str | int | tuple) else described.setdefault(id(value), path)
    return found


def _module(module: str) -> str:
    offered = importlib.import_module(module)
    own = [name for name in offered.__all__ if names()[f"{module}.{name}"] == f"{module}.{name}"]
    elsewhere = [name for name in offered.__all__ if name not in own]
    lines = [f"# `{module}`", "", inspect.cleandoc(offered.__doc__ or "").replace("::\n", ":\n"), ""]
    if elsewhere:
        lines += ["| name | described in |", "|---|---|"]
        for name in elsewhere:
            home = names()[f"{module}.{name}"]
            anchor = f'<span id="{module}.{name}"></span>'
            lines.append(f"| {anchor}`{name}` | [`{home}`][{home}] |")
        lines.append("")
    for name in own:
        value = getattr(offered, name)
        if isinstance(value, type) or inspect.isfunction(value):
            lines += [_describe(f"{module}.{name}", value), ""]
        else:
            lines += [f"## `{name}` {{#{module}.{name}}}", "", *_constant(f"{module}.{name}", value), ""]
    return "\n".join(lines)


def _describe(path: str, value: Any) -> str:
    """Where mkdocstrings describes a class or a function.

    Raises:
        ValueError: it has no docstring.
    """
    if not value.__doc__:
        raise ValueError(f"{path} is public and has no docstring")
    return f"::: {path}"


def _constant(path: str, value: Any) -> Iterator[str]:
    """A constant or an alias of a type: its value and the comment above it.

    Raises:
        ValueError: it has no comment.
    """
    said = _CONSTANTS.get(path) or _comment(path.rpartition(".")[2], value)
    if not said:
        raise ValueError(f"{path} is public and has no comment '#: ...' above it")
    shown = _ADDRESS.sub("", " ".join(repr(value).split()))
    yield from ("```python", shown if len(shown) <= 400 else f"{shown[:400]} ...", "```", "", _escape(said))


def _comment(name: str, value: Any) -> str:
    """The lines with ``#:`` above the assignment of a name, in whichever module it is made."""
    for module in [each for path, each in sorted(sys.modules.items()) if path.startswith("locus.")]:
        if vars(module).get(name) is not value:
            continue
        lines = inspect.getsource(module).splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if name in _targets(node):
                found, at = list[str](), node.lineno - 2
                while lines[at].startswith("#:"):
                    found.insert(0, lines[at].removeprefix("#:").strip())
                    at -= 1
                return "\n".join(found)
    return ""


def _targets(node: ast.stmt) -> set[str]:
    made = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {each.id for target in made for each in ast.walk(target) if isinstance(each, ast.Name)}


def _index() -> str:
    lines = [
        "# Reference",
        "",
        "Made from the code when this site is built. A release keeps what is listed here.",
        "",
        "| page | |",
        "|---|---|",
        "| [Hooks](hooks.md) | what plugins hook into, with exact signatures |",
        "| [Events](events.md) | what a run emits, with every field |",
        "| [Errors](errors.md) | what is raised |",
        "| [Settings](settings.md) | what each installed plugin can be told |",
        "| [Commands](commands.md) | the command line |",
        "",
        "| module | |",
        "|---|---|",
    ]
    for module in MODULES:
        lines.append(f"| [`{module}`]({module}.md) | {_first_sentence(importlib.import_module(module))} |")
    return "\n".join(lines) + "\n"


# --- hooks, events, errors -----------------------------------------------------------------------


def _hooks() -> str:
    lines = [
        "# Hooks",
        "",
        "A hook is a function of a plugin that the loop calls by its name. A plugin writes it as a function marked",
        "with [`hookimpl`][locus.plugin.hookimpl], or as a method of a [`Hook`][locus.plugin.Hook] without the prefix",
        "`locus_`: `on_think` for `locus_on_think`. It may leave out arguments that it does not use.",
        "",
    ]
    by_family: dict[str, list[HookInfo]] = {}
    for info in HOOKS.values():
        by_family.setdefault(info.family, []).append(info)
    if set(by_family) != set(_FAMILIES):
        raise ValueError(f"the families of hooks are {sorted(by_family)}, expected {sorted(_FAMILIES)}")
    for family in _FAMILIES:
        lines += [f"## {family.capitalize()}", "", _family(family), ""]
        for info in by_family[family]:
            if info.function.__name__ == info.name:
                lines += [f"### `{info.name}` {{#{info.name}}}", "", "```python", _signature(info.function), "```", ""]
                lines += [_escape(inspect.getdoc(info.function) or ""), ""]
        single = [info for info in by_family[family] if info.function.__name__ != info.name]
        if single:
            lines += [
                "One for each event, with the arguments of `locus_on_event`:",
                "",
                "| hook | event |",
                "|---|---|",
            ]
            for info in single:
                cls = event_types()[info.name.removeprefix("locus_on_")]
                lines.append(f'| <span id="{info.name}"></span>`{info.name}` | [`{cls.__name__}`]({_event(cls)}) |')
            lines.append("")
    return "\n".join(lines)


def _family(family: str) -> str:
    """What the docstring of the specifications says about a family."""
    text = inspect.getdoc(importlib.import_module("locus.hooks.specs")) or ""
    found = re.search(rf"^{family.capitalize()}: (.*?)(?=^[A-Z][a-z]+: |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"locus.hooks.specs does not describe the family {family!r}")
    said = found[1].strip()
    return _escape(said[0].upper() + said[1:])


def _signature(function: Callable[..., Any]) -> str:
    """A function's first line as the source has it, one parameter a line where it is long."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    whole = f"{kind} {node.name}({ast.unparse(node.args)}){returns}: ..."
    if len(whole) <= 100:
        return whole
    given = [ast.unparse(each) for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return "\n".join([f"{kind} {node.name}(", *(f"    {each}," for each in given), f"){returns}: ..."])


def _events() -> str:
    own = [cls for cls in event_types().values() if cls.__module__ == events.__name__]
    lines = ["# Events", "", "Every event is frozen and has the fields of its base class:", ""]
    lines += [*_fields(Event, attrs.fields(Event)), ""]
    for cls in sorted(own, key=lambda cls: cls.__name__):
        lines += [f"## `{cls.__name__}` {{#{cls.__name__}}}", ""]
        lines += [_escape(_prose(cls)), "", f"Its `type` is `{cls.type}`, and its hook `locus_on_{cls.type}`.", ""]
        lines += [*_fields(cls, [a for a in attrs.fields(cls) if a.name not in attrs.fields_dict(Event)]), ""]
    return "\n".join(lines)


def _event(cls: type[Event]) -> str:
    return f"events.md#{cls.__name__}"


def _errors() -> str:
    lines = ["# Errors", "", "Every error that Locus raises on purpose, below the class that it derives from.", ""]
    classes = [cls for name in errors.__all__ if isinstance(cls := getattr(errors, name), type)]

    def below(base: type, depth: int) -> None:
        for cls in sorted(classes, key=lambda cls: cls.__name__):
            if cls.__base__ is base and cls is not LocusError:
                lines.append(f"{'    ' * depth}- {_error(cls)}")
                below(cls, depth + 1)

    lines.append(f"- {_error(LocusError)}")
    below(LocusError, 1)
    return "\n".join(lines) + "\n"


def _error(cls: type) -> str:
    return f"[`{cls.__name__}`][locus.core.errors.{cls.__name__}]: {_first_sentence(cls)}"


# --- settings and commands -----------------------------------------------------------------------


def _settings() -> str:
    lines = [
        "# Settings of plugins",
        "",
        "Each plugin reads its settings from `[plugins.NAME]` in a configuration file, or from the keyword of its",
        'name: `Agent(..., sqlite={"sync": "normal"})`. A factory makes the default where `...` is shown.',
        "",
    ]
    for manifest in plugins():
        lines += [f"## {manifest.name}", "", _escape(manifest.summary), ""]
        if manifest.settings is not None:
            settings = resolve(manifest.settings)
            lines += [*_fields(settings, [a for a in attrs.fields(settings) if a.init]), ""]
        for keyword, setting in sorted(manifest.keywords.items()):
            lines += [f"`Agent({keyword}=...)` sets `{setting}`.", ""]
        for kind in sorted({"model", "checkpointer", "backend"} & set(manifest.provides)):
            lines += [f'It is the scheme of a {kind}: `{kind}="{manifest.name}:..."`.', ""]
    return "\n".join(lines)


@cache
def plugins() -> tuple[Plugin, ...]:
    """The manifests of what is installed, by name."""
    found = [point.load() for point in importlib_metadata.entry_points(group=GROUP)]
    return tuple(sorted(found, key=lambda manifest: manifest.name))


def _commands() -> str:
    context = click.Context(root, info_name="locus", obj=CommonOptions())
    lines = ["# Commands", "", "The command line comes with the plugin `cli`; plugins add commands to it.", ""]
    lines += _options(context, root)
    for name, command in _subcommands(context, root):
        lines += _command(click.Context(command, parent=context, info_name=name), command, 2)
    return "\n".join(lines) + "\n"


def _subcommands(context: click.Context, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    # Those of plugins, too, which the help leaves out where nothing is configured.
    names = sorted({*group.list_commands(context), *(group.contributed(context) if isinstance(group, Root) else ())})
    for name in names:
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command


def _command(context: click.Context, command: click.Command, depth: int) -> Iterator[str]:
    yield from (f"{'#' * depth} `{context.command_path}`", "")
    yield from (_escape(inspect.cleandoc(command.help or command.short_help or "").replace("\b\n", "")), "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"{context.command_path} {usage}", "```", "")
    yield from _options(context, command)
    if isinstance(command, click.Group):
        for name, each in _subcommands(context, command):
            yield from _command(click.Context(each, parent=context, info_name=name), each, min(depth + 1, 4))


def _options(context: click.Context, command: click.Command) -> Iterator[str]:
    rows = [record for each in command.get_params(context) if (record := each.get_help_record(context)) is not None]
    if rows:
        yield from ("| option | |", "|---|---|")
        yield from (f"| `{_cell(option)}` | {_cell(_escape(said))} |" for option, said in rows)
        yield ""


# --- what they share -----------------------------------------------------------------------------


def _fields(cls: type, fields: Iterable[attrs.Attribute[Any]]) -> Iterator[str]:
    """A table of the fields of a class, with what its docstring says about each."""
    said = _explain(cls)
    rows = [
        f"| `{a.name}` | `{_cell(str(getattr(a.type, '__name__', a.type)))}` | {_default(a)} "
        f"| {_cell(_escape(said.get(a.name, '')))} |"
        for a in fields
    ]
    if rows:
        yield from ("| field | type | default | |", "|---|---|---|---|", *rows)


def _explain(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        for parameter in parse(each.__doc__ or "", DocstringStyle.GOOGLE).params:
            found[parameter.arg_name] = parameter.description or ""
    return found


def _default(field: attrs.Attribute[Any]) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    shown = "..." if isinstance(field.default, attrs.Factory) else repr(field.default)  # type: ignore[arg-type]
    return f"`{_cell(shown)}`"


def _prose(cls: type) -> str:
    """A docstring without its sections."""
    return re.split(r"^(?:Args|Attributes|Raises):$", inspect.cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)[
        0
    ].strip()


def _first_sentence(described: Any) -> str:
    text = " ".join(inspect.cleandoc(described.__doc__ or "").split("\n\n")[0].split())
    return _cell(_escape(re.split(r"(?<=[.])\s", text)[0]))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escape(text: str) -> str:
    """Write ``<`` outside of code so that no browser takes it for a tag."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
