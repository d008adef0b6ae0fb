"""Settings: from tables of a file, and dicts of a program, to a plugin's frozen settings class.

Strict, because a setting that is silently turned into something else is worse than an error: ``"7"`` is not
7, ``true`` is not 1, an unknown key is a typing mistake. Everything that is wrong is reported at once, each
with its place, what it is and what it should be.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import attrs

from locus.core.errors import ConfigError, SettingsError, closest
from locus.core.frozen import freeze, frozen, thaw
from locus.plugins.secret import Secret, redact, show_values

T = TypeVar("T")


@frozen
class Layer:
    """Settings from one place; of several layers the later one wins, key by key.

    Args:
        source: the file, or the call, as the user knows it.
        path: the table within the file, such as ``"plugins.audit"``; ``""`` for the top.
        values: the settings.
    """

    source: str
    path: str
    values: Mapping[str, Any] = attrs.field(repr=show_values)


def structure(cls: type[T], layers: Sequence[Layer], environ: Mapping[str, str] | None = None) -> T:
    """An instance of a settings class.

    Args:
        cls: a frozen attrs class; nested attrs classes, Literal, enums, unions, containers, paths and
            `Secret` are understood.
        layers: from the weakest to the strongest.
        environ: where secrets come from; the process's environment when None.

    Raises:
        SettingsError: every problem, one line each.
        ConfigError: the class itself cannot be used: an annotation cannot be resolved.
    """
    values: dict[str, Any] = {}
    origin: dict[str, Layer] = {}
    for layer in layers:
        for key, value in layer.values.items():
            values[key], origin[key] = value, layer
    fallback = layers[-1] if layers else Layer("settings", "", {})
    try:
        made: T = _Reader(os.environ if environ is None else environ).read(values, cls)
    except _Wrong as wrong:
        lines = [
            _line(origin.get(str(path[0]), fallback) if path else fallback, path, text) for path, text in wrong.problems
        ]
        raise SettingsError(lines) from None
    return made


def _line(layer: Layer, path: tuple[str | int, ...], text: str) -> str:
    where = layer.path
    for part in path:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else part
    return f"{layer.source}: {where} {text}" if where else f"{layer.source}: {text}"


_Fault = tuple[tuple[str | int, ...], str]


class _Wrong(Exception):
    def __init__(self, problems: list[_Fault]) -> None:
        self.problems = problems
        super().__init__(problems)


def _refuse(value: Any, cls: Any, expected: str, near: Iterable[str] = ()) -> NoReturn:
    """Refuse a value; what might be a secret is not shown."""
    hint = closest(value, near) if isinstance(value, str) else None
    text = f"is {_show(value, cls)}; expected {expected}"
    raise _Wrong([((), f"{text}; did you mean {hint!r}?" if hint else text)])


def _show(value: Any, cls: Any) -> str:
    if _holds_secret(cls):
        return f"a {type(value).__name__} (not shown)"
    text = redact(repr(thaw(value)))  # a list as a list, although it was frozen on the way
    return text if len(text) <= 60 else f"{text[:57]}..."


def _holds_secret(cls: Any) -> bool:
    return cls is Secret or any(_holds_secret(part) for part in get_args(cls))


def _describe(cls: Any) -> str:
    """A type, in the words of a configuration file."""
    if get_origin(cls) is Literal:
        return "one of " + ", ".join(map(repr, get_args(cls)))
    if get_origin(cls) in (Union, UnionType):
        return " or ".join(_describe(part) for part in get_args(cls) if part is not type(None))
    bare = get_origin(cls) or cls
    if isinstance(bare, type):
        if issubclass(bare, Enum):
            return "one of " + ", ".join(repr(member.value) for member in bare)
        if attrs.has(bare) or issubclass(bare, Mapping):
            return "a table"
        if bare in _WORDS:
            return _WORDS[bare]
        return "a list" if issubclass(bare, Iterable) else f"a {bare.__name__}"
    return str(cls)


_WORDS: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    Secret: 'a secret, written { env = "NAME" }',
}


class _Reader:
    """One reading, which knows the environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        #: How the values of a class are read; the first one that it is derived from counts.
        self._readers: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = (
            (Secret, self._read_secret),
            (Enum, self._enum),
            ((int, float, str, bytes), self._plain),
            (Path, self._path),
            ((Sequence, set, frozenset), self._list),
            (Mapping, self._table),
            (object, self._instance),
        )

    def read(self, value: Any, cls: Any) -> Any:
        """A value of that type.

        Raises:
            _Wrong: with all that is wrong.
            ConfigError: nothing of that type can be read.
        """
        bare = get_origin(cls) or cls
        if bare is Annotated:
            return self.read(value, cls.__origin__)
        if bare is Any or bare is object:
            return freeze(value)
        if bare in (Union, UnionType):
            return self._union(value, cls)
        if bare is Literal:
            return self._literal(value, cls)
        if not isinstance(bare, type):
            raise ConfigError(f"a setting of type {cls} cannot be read; use plain types and attrs classes")
        if attrs.has(bare):
            return self._attrs(value, cls)
        return next(read for kinds, read in self._readers if issubclass(bare, kinds))(value, cls)

    def _plain(self, value: Any, cls: Any) -> Any:
        if cls is float and type(value) is int:
            return float(value)
        if type(value) is not cls:
            _refuse(value, cls, _describe(cls))
        return value

    def _path(self, value: Any, cls: Any) -> Path:
        if not isinstance(value, str | Path) or value == "":
            _refuse(value, cls, _describe(cls))
        return Path(value).expanduser()

    def _read_secret(self, value: Any, cls: Any) -> Secret:
        if isinstance(value, Secret):
            return value
        if not isinstance(value, Mapping) or set(value) != {"env"} or not isinstance(value["env"], str):
            _refuse(value, cls, f"{_describe(cls)} (in code: Secret(text))")
        name = value["env"]
        text = self._environ.get(name, "")
        if not text:
            state = "is empty" if name in self._environ else "is not set"
            raise _Wrong([((), f"takes its secret from the environment variable {name}, which {state}; set it")])
        return Secret(text, name)

    def _literal(self, value: Any, cls: Any) -> Any:
        choices = get_args(cls)
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return choice
        return _refuse(value, cls, _describe(cls), [c for c in choices if isinstance(c, str)])

    def _enum(self, value: Any, cls: Any) -> Any:
        for member in cls:
            if value is member or (type(member.value) is type(value) and member.value == value):
                return member
        return _refuse(value, cls, _describe(cls), [m.value for m in cls if isinstance(m.value, str)])

    def _union(self, value: Any, cls: Any) -> Any:
        members = [part for part in get_args(cls) if part is not type(None)]
        if value is None and len(members) < len(get_args(cls)):
            return None
        if len(members) == 1:
            return self.read(value, members[0])
        if Secret in members and isinstance(value, Mapping) and set(value) == {"env"}:
            return self.read(value, Secret)  # what is wrong with the variable is what there is to say
        # An exact match first, so that the integer 1 stays one where "int | float" or "float | int" is meant.
        for member in sorted(members, key=lambda part: type(value) is not part):
            try:
                return self.read(value, member)
            except _Wrong as wrong:
                # For a table, an error inside it says more than the error that it matches no member of the union.
                if isinstance(value, Mapping) and attrs.has(member) and sum(map(attrs.has, members)) == 1:
                    raise wrong from None
        return _refuse(value, cls, _describe(cls))

    def _list(self, value: Any, cls: Any) -> Any:
        bare = get_origin(cls) or cls
        if not isinstance(value, list | tuple | set | frozenset):
            _refuse(value, cls, _describe(cls))
        kinds = get_args(cls)
        if bare is tuple and kinds and kinds[-1] is not ...:
            if len(value) != len(kinds):
                _refuse(value, cls, f"a list of exactly {len(kinds)}")
            each: Sequence[Any] = kinds
        else:
            each = [kinds[0] if kinds else Any] * len(value)
        found = self._all((i, item, kind) for i, (item, kind) in enumerate(zip(value, each, strict=True)))
        make = bare if bare in (list, set, frozenset) else tuple
        return make(found.values())

    def _table(self, value: Any, cls: Any) -> Any:
        if not isinstance(value, Mapping):
            _refuse(value, cls, _describe(cls))
        kinds = get_args(cls) or (str, Any)
        odd = [key for key in value if not isinstance(key, kinds[0] if isinstance(kinds[0], type) else str)]
        if odd:
            _refuse(odd[0], cls, "keys of type " + getattr(kinds[0], "__name__", str(kinds[0])))
        found = self._all((key, item, kinds[1]) for key, item in value.items())
        return found if (get_origin(cls) or cls) is dict else freeze(found)

    def _instance(self, value: Any, cls: Any) -> Any:
        bare = get_origin(cls) or cls
        if bare is type(None) or not isinstance(value, bare):
            _refuse(value, cls, _describe(cls))
        return value

    def _attrs(self, value: Any, cls: Any) -> Any:
        bare: Any = get_origin(cls) or cls
        if isinstance(value, bare):
            return value
        if not isinstance(value, Mapping):
            _refuse(value, cls, "a table")
        fields = {field.alias: field for field in _fields(bare)}
        problems: list[_Fault] = [((str(key),), _unknown_key(str(key), fields)) for key in value if key not in fields]
        made: dict[str, Any] = {}
        for key, field in fields.items():
            if key in value:
                try:
                    made[key] = self.read(value[key], Any if field.type is None else field.type)
                except _Wrong as wrong:
                    problems += [((key, *path), text) for path, text in wrong.problems]
            elif field.default is attrs.NOTHING:
                problems.append(((key,), f"is missing; expected {_describe(field.type)}"))
        problems += _find_invalid(fields, made)
        if problems:
            raise _Wrong(problems)
        try:
            return bare(**made)
        except (ValueError, TypeError) as e:  # a rule about several fields at once
            raise _Wrong([((), _message_of(e))]) from e

    def _all(self, items: Iterable[tuple[Any, Any, Any]]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        problems: list[_Fault] = []
        for key, item, kind in items:
            try:
                found[key] = self.read(item, kind)
            except _Wrong as wrong:
                problems += [((key, *path), text) for path, text in wrong.problems]
        if problems:
            raise _Wrong(problems)
        return found


def _fields(cls: Any) -> list[Any]:
    try:
        attrs.resolve_types(cls)
    except NameError as e:
        raise ConfigError(
            f"the annotations of {cls.__name__} cannot be resolved: {e}; import the types of settings at run time"
        ) from e
    return [field for field in attrs.fields(cls) if field.init]


def _unknown_key(key: str, known: Iterable[str]) -> str:
    near = closest(key, known)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted(known))}"
    return f"is not a setting; {hint}"


def _find_invalid(fields: Mapping[str, Any], made: Mapping[str, Any]) -> list[_Fault]:
    """What the fields' own validators say, all of them: attrs itself stops at the first and names no field."""
    probe = SimpleNamespace(**{fields[key].name: value for key, value in made.items()})
    problems: list[_Fault] = []
    for key, value in made.items():
        field = fields[key]
        if field.validator is None:
            continue
        try:
            is_plain = callable(field.converter) and not isinstance(field.converter, attrs.Converter)
            converted = field.converter(value) if is_plain else value
            field.validator(probe, field, converted)
        except AttributeError:
            continue  # it looks at a field that is wrong itself; the class is asked when that one is right
        except (ValueError, TypeError) as e:
            problems.append(((key,), f"is {_show(value, field.type)}: {_message_of(e)}"))
    return problems


def _message_of(error: Exception) -> str:
    # The validators of attrs put the attribute and the value behind their message.
    return str(error.args[0]) if error.args else type(error).__name__
