"""Cases from a file of YAML: all that is wrong with it at once, each with its case, key, value and what is expected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import cattrs
import cattrs.gen
from attrs import evolve, fields
from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError

from locus.core import Pattern
from locus.core.errors import InputError, closest
from locus.schema import safe_repr
from locus_plugin_eval import checks, schemas
from locus_plugin_eval.cases import Case, Suite
from locus_plugin_eval.documents import NotPlain, parse_yaml
from locus_plugin_eval.json_values import Fault, find_no_json

__all__ = ["KINDS", "InvalidCases", "read_cases"]

#: What a check is called in a file, and where its short form goes.
KINDS: Mapping[str, tuple[type[Any], str]] = {
    "exact": (checks.Exact, "text"),
    "contains": (checks.Contains, "texts"),
    "regex": (checks.Matches, "pattern"),
    "schema": (checks.ValidJson, "schema"),
    "called": (checks.Called, "tool"),
    "not_called": (checks.NotCalled, "tool"),
    "grounded": (checks.Grounded, "score"),
    "judge": (checks.Judge, "criterion"),
    "ends": (checks.Ends, "reasons"),
}

#: Faults of one value that are named: one that is in an alias is as often in a file as that is.
_MOST_FAULTS = 20

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class InvalidCases(InputError):
    """A file of cases cannot be used.

    Args:
        path: the file.
        problems: all that is wrong with it.
    """

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.path, self.problems = path, tuple(problems)
        super().__init__("\n".join(f"{path}: {each}" for each in problems))


def read_cases(path: Path | str) -> Suite:
    """The cases of a file.

    Raises:
        InvalidCases: it cannot be read, or something in it is wrong; every problem is named.
    """
    path = Path(path)
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise InvalidCases(path, [f"cannot be read: {e.strerror or e}"]) from e
    except (NotPlain, UnicodeError) as e:
        raise InvalidCases(path, [f"expected YAML: {e}"]) from e
    if data is None:
        raise InvalidCases(path, ["the file is empty; expected `cases:` and a list of them"])
    if isinstance(data, list):
        data = {"cases": data}
    if not isinstance(data, dict):
        raise InvalidCases(path, [f"expected keys such as `cases:`, got {safe_repr(data)}"])
    try:
        suite: Suite = _CONVERTER.structure({"name": path.name.removesuffix(".eval.yaml"), **data}, Suite)
    except cattrs.BaseValidationError as e:
        raise InvalidCases(path, [*_problems(e, data, ()), *_find_wrong_cases(data)]) from e
    if wrong := list(_find_wrong_cases(data)):
        raise InvalidCases(path, wrong)
    return evolve(suite, path=path)


def _find_wrong_cases(data: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the cases together."""
    cases = data.get("cases")
    if isinstance(cases, list):
        if not cases:
            yield "cases: the list is empty; expected at least one case"
        ids = [each.get("id") for each in cases if isinstance(each, dict)]
        for known, count in Counter(each for each in ids if isinstance(each, str)).items():
            if count > 1:
                yield f"case {known!r}: id: {count} cases have this id; expected each to have its own"


# -- values ---------------------------------------------------------------------------------------


class _Unfit(ValueError):
    """A value that is not what was expected."""


class _Inside(Exception):
    """What is wrong below a key that is not an attribute."""

    def __init__(self, key: str | int, error: BaseException) -> None:
        self.key, self.error = key, error
        super().__init__(key)


def _refuse(expected: str, got: object) -> NoReturn:
    raise _Unfit(f"expected {expected}, got {safe_repr(got)}")


def _text(value: Any, _: Any = None) -> str:
    if not isinstance(value, str):
        _refuse("text (in quotes, if it looks like a number, a date or yes and no)", value)
    if not value.strip():
        _refuse("text with something in it", value)
    return value


def _texts(value: Any, _: Any = None) -> tuple[str, ...]:
    if isinstance(value, str):
        return (_text(value),)
    if not isinstance(value, list) or not value:
        _refuse("text, or a list of texts", value)
    return tuple(map(_text, value))


def _many_texts(value: Any, _: Any = None) -> tuple[str, ...]:
    return () if value == [] else _texts(value)


def _case_id(value: Any, _: Any = None) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        _refuse("an id of letters, digits, '.', '_' and '-' (in quotes, if it looks like a number)", value)
    return value


def _count(value: Any, _: Any = None) -> int:
    if type(value) is not int or not 1 <= value <= 10_000:
        _refuse("a whole number from 1 to 10000", value)
    return value


def _times(value: Any, _: Any = None) -> int:
    if type(value) is not int or value < 0:
        _refuse("a whole number, 0 or more", value)
    return value


def _share(value: Any, _: Any = None) -> float:
    if value is True:  # `grounded: true`
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        _refuse("a number from 0 to 1", value)
    return float(value)


def _flag(value: Any, _: Any = None) -> bool:
    if not isinstance(value, bool):
        _refuse("true or false", value)
    return value


def _thresholds(value: Any, _: Any = None) -> dict[str, float]:
    if not isinstance(value, dict):
        _refuse("shares by `pass` or a kind of check, such as {pass: 0.9}", value)
    found, errors = {}, []
    known = ["pass", "ended", *(kind for kind in KINDS if kind != "ends")]
    for key, share in value.items():
        try:
            if key not in known:
                raise _Unfit(_unknown(key, known))
            if isinstance(share, bool):
                _refuse("a number from 0 to 1", share)
            found[key] = _share(share)
        except _Unfit as e:
            errors.append(_Inside(str(key), e))
    if errors:
        raise ExceptionGroup("thresholds", errors)
    return found


def _pattern(value: Any, _: Any = None) -> Pattern:
    try:
        return Pattern(_text(value))
    except _Unfit:
        raise
    except ValueError as e:
        raise _Unfit(str(e)) from e


def _schema(value: Any, _: Any = None) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        _refuse("a JSON Schema, such as {type: object}", value)
    _refuse_faults(find_no_json(value))
    _refuse_faults(schemas.find_faults(value))
    return value


def _arguments(value: Any, _: Any = None) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        _refuse("arguments by name, such as {order: 7}", value)
    _refuse_faults(find_no_json(value))
    return value


def _refuse_faults(faults: Iterator[Fault]) -> None:
    errors: list[Exception] = []
    for path, said in islice(faults, _MOST_FAULTS):
        error: Exception = _Unfit(said)
        for key in reversed(path):
            error = _Inside(key, error)
        errors.append(error)
    if errors:
        raise ExceptionGroup("faults", errors)


def _check(value: Any, _: Any = None) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        _refuse("one check, such as {contains: lamp}", value)
    ((kind, body),) = value.items()
    if kind not in KINDS:
        raise _Inside(str(kind), _Unfit(_unknown(kind, KINDS)))
    cls, main = KINDS[kind]
    is_whole = isinstance(body, dict) and cls is not checks.ValidJson
    try:
        return _CONVERTER.structure(body if is_whole else {main: body}, cls)
    except cattrs.BaseValidationError as e:
        # The short form has no key of its own to name.
        raise _Inside(str(kind), e if is_whole else e.exceptions[0]) from e


def _unknown(key: object, known: Any) -> str:
    near = closest(str(key), list(known))
    hint = f"did you mean {near!r}?" if near else f"the keys are {', '.join(known)}"
    return f"{safe_repr(key)} is not known; {hint}"


def _cases(value: Any, _: Any = None) -> tuple[Case, ...]:
    if not isinstance(value, list):
        _refuse("a list of cases", value)
    found, errors = [], []
    for n, each in enumerate(value):
        try:
            if not isinstance(each, dict):
                _refuse("a case with the keys id, prompt and checks", each)
            found.append(_CONVERTER.structure(each, Case))
        except (_Unfit, cattrs.BaseValidationError) as e:
            errors.append(_Inside(n, e))
    if errors:
        raise ExceptionGroup("cases", errors)
    return tuple(found)


def _make_converter() -> cattrs.Converter:
    made = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    hooks: dict[type[Any], dict[str, Any]] = {
        checks.Exact: {"text": _text},
        checks.Contains: {"texts": _texts, "ignore_case": _flag},
        checks.Matches: {"pattern": _pattern},
        checks.ValidJson: {"schema": _schema},
        checks.Called: {"tool": _text, "arguments": _arguments, "times": _times},
        checks.NotCalled: {"tool": _text, "arguments": _arguments},
        checks.Grounded: {"score": _share},
        checks.Judge: {"criterion": _text},
        checks.Ends: {"reasons": _texts},
        Case: {"id": _case_id, "prompt": _texts, "answers": _many_texts, "tags": _many_texts, "checks": _checks},
        Suite: {
            "name": _text,
            "agent": _text,
            "judge": _text,
            "repeats": _count,
            "concurrency": _count,
            "thresholds": _thresholds,
            "cases": _cases,
        },
    }
    for cls, given in hooks.items():
        overrides: dict[str, Any] = {name: cattrs.gen.override(struct_hook=hook) for name, hook in given.items()}
        if cls is Suite:
            overrides["path"] = cattrs.gen.override(omit=True)
        made.register_structure_hook(cls, cattrs.gen.make_dict_structure_fn(cls, made, **overrides))
    return made


def _checks(value: Any, _: Any = None) -> tuple[Any, ...]:
    if not isinstance(value, list):
        _refuse("a list of checks, such as [{contains: lamp}]", value)
    found, errors = [], []
    for n, each in enumerate(value):
        try:
            found.append(_check(each))
        except (_Unfit, _Inside) as e:
            errors.append(_Inside(f"[{n}]", e))
    if errors:
        raise ExceptionGroup("checks", errors)
    return tuple(found)


_CONVERTER = _make_converter()


# -- problems -------------------------------------------------------------------------------------


def _problems(error: BaseException, data: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    """Each thing that is wrong, as a line.

    Args:
        error: what cattrs raised, or what is inside of it.
        data: the whole file.
        path: of the value that it is about.
    """
    if isinstance(error, _Inside):
        yield from _problems(error.error, data, (*path, error.key))
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [each.name for each in fields(error.cl) if each.init and each.name != "path"]
        for key in sorted(map(str, error.extra_fields)):
            yield f"{_where(data, path)}{_unknown(key, known)}"
    elif isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            notes = getattr(each, "__notes__", ())
            names = [note.name for note in notes if isinstance(note, AttributeValidationNote)]
            yield from _problems(each, data, (*path, *names[:1]))
    elif isinstance(error, KeyError):
        yield f"{_where(data, path[:-1])}the key {error.args[0]!r} is missing"
    else:
        yield f"{_where(data, path)}{error}"


def _where(data: Any, path: tuple[str | int, ...]) -> str:
    """The case and the keys of a value."""
    if len(path) > 1 and path[0] == "cases" and isinstance(path[1], int):
        case = data["cases"][path[1]]
        named = case.get("id") if isinstance(case, dict) else None
        first = f"case {named!r}" if isinstance(named, str) else f"case number {path[1] + 1}"
        path = path[2:]
    else:
        first = ""
    keys = ".".join(str(each) for each in path).replace(".[", "[")
    return "".join(f"{each}: " for each in (first, keys) if each)
