"""Settings: strict, complete in what they complain about, and silent about secrets."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.lowlevel
import pytest
from attrs import field, frozen, validators
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import ConfigError, SettingsError
from locus.core.frozen import FrozenDict, freeze
from locus.plugins.secret import Secret
from locus.plugins.settings import Layer, structure

if TYPE_CHECKING:
    from decimal import Decimal


class Mode(Enum):
    BLOCK = "block"
    WARN = "warn"


class Level(StrEnum):
    INFO = "INFO"


class Size(IntEnum):
    SMALL = 1


@frozen
class Limits:
    calls: int
    rate: float = 1.0


def one(kind: Any, value: Any, environ: Mapping[str, str] | None = None) -> Any:
    """The value as a settings class with one field of that type reads it."""
    cls = frozen(type("Settings", (), {"__annotations__": {"x": kind}, "__module__": __name__}))
    made: Any = structure(cls, [Layer("locus.toml", "plugins.toy", {"x": value})], environ or {})
    return made.x


def problems(kind: Any, value: Any, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        one(kind, value, environ)
    return caught.value.problems


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (int, 7, 7),
        (float, 7, 7.0),
        (float, 0.5, 0.5),
        (bool, True, True),
        (str, "", ""),
        (int | None, None, None),
        (int | None, 7, 7),
        (int | str, "7", "7"),
        (float | int, 7, 7),
        (Literal["a", 1], 1, 1),
        (Mode, "warn", Mode.WARN),
        (Mode, Mode.WARN, Mode.WARN),
        (Level, "INFO", Level.INFO),
        (Size, 1, Size.SMALL),
        (Path, "work", Path("work")),
        (Path, Path("work"), Path("work")),
        (date, date(2026, 5, 4), date(2026, 5, 4)),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (list[int], (1, 2), [1, 2]),
        (frozenset[str], ["a", "a"], frozenset({"a"})),
        (Sequence[str], ["a"], ("a",)),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Mapping[str, int], {"a": 1}, FrozenDict({"a": 1})),
        (Any, {"a": [1]}, FrozenDict({"a": (1,)})),
        (Limits, {"calls": 1, "rate": 2}, Limits(1, 2.0)),
        (Limits, Limits(1), Limits(1)),
        (tuple[Limits, ...], [{"calls": 1}], (Limits(1),)),
        (dict[str, Limits], {"a": {"calls": 1}}, {"a": Limits(1)}),
        (Limits | None, {"calls": 1}, Limits(1)),
    ],
    ids=repr,
)
def test_a_right_value_is_read_as_its_type(kind: Any, value: Any, read: Any) -> None:
    got = one(kind, value)

    assert got == read
    assert type(got) is type(read)


def test_a_home_directory_is_spelled_out() -> None:
    assert one(Path, "~/work") == Path.home() / "work"


@pytest.mark.parametrize(
    ("kind", "value", "complaint"),
    [
        (int, "7", "is '7'; expected an integer"),
        (int, True, "is True; expected an integer"),
        (int, 7.0, "is 7.0; expected an integer"),
        (float, "7", "is '7'; expected a number"),
        (float, True, "is True; expected a number"),
        (str, 3.5, "is 3.5; expected text"),
        (bool, 1, "is 1; expected true or false"),
        (bool, "true", "is 'true'; expected true or false"),
        (int | None, "7", "is '7'; expected an integer"),
        (int | str, 1.5, "is 1.5; expected an integer or text"),
        (int, None, "is None; expected an integer"),
        (Literal["fast", "safe"], "sfae", "is 'sfae'; expected one of 'fast', 'safe'; did you mean 'safe'?"),
        (Literal[1], True, "is True; expected one of 1"),
        (Mode, "wran", "is 'wran'; expected one of 'block', 'warn'; did you mean 'warn'?"),
        (Level, "DEBUG", "is 'DEBUG'; expected one of 'INFO'"),
        (Size, True, "is True; expected one of 1"),
        (Path, 3, "is 3; expected a path"),
        (Path, "", "is ''; expected a path"),
        (date, "2026-05-04", "is '2026-05-04'; expected a date"),
        (tuple[int, ...], "12", "is '12'; expected a list"),
        (tuple[int, str], [1], "is [1]; expected a list of exactly 2"),
        (dict[str, int], [1], "is [1]; expected a table"),
        (dict[str, int], {1: 1}, "is 1; expected keys of type str"),
        (Limits, 3, "is 3; expected a table"),
        (str, "x" * 100, None),
        (int, "x" * 100, f"is '{'x' * 56}...; expected an integer"),
    ],
    ids=repr,
)
def test_a_wrong_value_is_shown_with_what_it_should_be(kind: Any, value: Any, complaint: str | None) -> None:
    if complaint is None:
        assert one(kind, value) == value
        return

    assert problems(kind, value) == (f"locus.toml: plugins.toy.x {complaint}",)


@pytest.mark.parametrize(
    ("kind", "value", "where"),
    [
        (tuple[int, ...], [1, "a", 2, "b"], ("x[1]", "x[3]")),
        (dict[str, int], {"a": "b"}, ("x.a",)),
        (Limits, {"calls": "1", "rate": "2"}, ("x.calls", "x.rate")),
        (tuple[Limits, ...], [{"calls": 1}, {"calls": "1"}], ("x[1].calls",)),
        (Limits | None, {"calls": "1"}, ("x.calls",)),
    ],
    ids=repr,
)
def test_every_wrong_value_inside_is_named_by_its_path(kind: Any, value: Any, where: tuple[str, ...]) -> None:
    assert tuple(line.split()[1].removeprefix("plugins.toy.") for line in problems(kind, value)) == where


@frozen
class Audit:
    path: Path
    mode: Literal["block", "warn"] = "block"
    max_calls: int = field(default=3, validator=validators.ge(1))
    key: Secret | None = None
    limits: Limits = Limits(1)
    names: FrozenDict[str, Any] = field(factory=FrozenDict, converter=freeze)
    _hidden: str = "x"
    made: int = field(default=0, init=False)


def audit(*layers: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Audit:
    return structure(Audit, [Layer(f"file{i}", "t", layer) for i, layer in enumerate(layers)], environ or {})


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        audit({"mod": "x", "mode": "wran", "max_calls": 0, "limits": {"cals": 1}, "made": 1})

    assert caught.value.problems == (
        "file0: t.mod is not a setting; did you mean 'mode'?",
        "file0: t.made is not a setting; did you mean 'mode'?",
        "file0: t.path is missing; expected a path",
        "file0: t.mode is 'wran'; expected one of 'block', 'warn'; did you mean 'warn'?",
        "file0: t.limits.cals is not a setting; did you mean 'calls'?",
        "file0: t.limits.calls is missing; expected an integer",
        "file0: t.max_calls is 0: 'max_calls' must be >= 1: 0",
    )
    assert str(caught.value) == "\n".join(caught.value.problems)


def test_a_setting_that_looks_like_no_other_comes_with_all_there_are() -> None:
    with pytest.raises(
        SettingsError, match=r"t\.zzz is not a setting; known: hidden, key, limits, max_calls, mode, names, path"
    ):
        audit({"path": "p", "zzz": 1})


def test_a_later_layer_wins_key_by_key_and_each_complaint_names_its_own_place() -> None:
    read = audit({"path": "p", "mode": "warn", "hidden": "y"}, {"mode": "block"})
    assert (read.path, read.mode, read._hidden) == (Path("p"), "block", "y")

    with pytest.raises(SettingsError) as caught:
        audit({"path": 1, "mode": "no"}, {"mode": "also no", "max_calls": "x"})
    assert sorted(line.split(": ")[0] + " " + line.split()[1] for line in caught.value.problems) == [
        "file0 t.path",
        "file1 t.max_calls",
        "file1 t.mode",
    ]


def test_a_rule_about_several_fields_is_reported_for_the_table() -> None:
    @frozen
    class Range:
        low: int = 0
        high: int = field(default=1)

        def __attrs_post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError(f"low is {self.low} and high is {self.high}; low comes first")

    with pytest.raises(SettingsError) as caught:
        structure(Range, [Layer("locus.toml", "plugins.toy", {"low": 3})])

    assert caught.value.problems == ("locus.toml: plugins.toy low is 3 and high is 1; low comes first",)


def test_a_validator_that_looks_at_another_field_is_asked_when_that_one_is_right() -> None:
    def below_high(instance: Any, attribute: Any, value: int) -> None:
        if value > instance.high:
            raise ValueError("low must be below high")

    @frozen
    class Range:
        high: int
        low: int = field(default=0, validator=below_high)

    with pytest.raises(SettingsError) as caught:
        structure(Range, [Layer("f", "", {"high": "x", "low": 9})])
    assert caught.value.problems == ("f: high is 'x'; expected an integer",)
    with pytest.raises(SettingsError, match="f: low is 9: low must be below high"):
        structure(Range, [Layer("f", "", {"high": 1, "low": 9})])


def test_a_settings_class_that_cannot_be_read_is_its_authors_error() -> None:
    @frozen
    class Typed:
        x: Decimal

    with pytest.raises(ConfigError, match="annotations of Typed cannot be resolved: name 'Decimal' is not defined"):
        structure(Typed, [Layer("f", "", {"x": 1})])


# -- secrets ---------------------------------------------------------------------------------------


def test_a_secret_comes_from_the_environment_and_is_never_shown() -> None:
    secret = one(Secret, {"env": "KEY"}, {"KEY": "hunter2"})

    assert secret.reveal() == "hunter2"
    shown = (repr(secret), str(secret), f"{secret}", repr(Audit(Path("p"), key=secret)), repr(Secret("hunter2")))
    assert not any("hunter2" in text for text in shown)
    assert repr(secret) == "Secret(env='KEY')"
    assert secret == Secret("hunter2")
    assert hash(secret) == hash(Secret("hunter2"))
    assert copy.deepcopy(secret) is secret
    assert copy.copy(secret) is secret
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_a_secret_may_be_a_function_that_is_asked_each_time() -> None:
    tokens = iter(["first", "second"])
    secret = Secret(lambda: next(tokens))

    assert one(Secret, secret) is secret
    assert repr(secret) == "Secret('***')"
    assert (secret.reveal(), secret.reveal()) == ("first", "second")
    with pytest.raises(TypeError, match="must return a str, got bytes"):
        Secret(lambda: b"hunter2").reveal()  # type: ignore[arg-type, return-value]


async def _fetch() -> str:
    await anyio.lowlevel.checkpoint()
    return "hunter2"


class _Fetches:
    async def __call__(self) -> str:
        return await _fetch()


@pytest.mark.anyio
@pytest.mark.parametrize("given", [_fetch, _Fetches()])
async def test_a_secret_may_be_an_async_function(given: Any) -> None:
    secret = Secret(given)

    assert (secret.is_function, secret.is_async) == (True, True)
    assert await secret.areveal() == "hunter2"
    assert "hunter2" not in repr(secret)
    with pytest.raises(TypeError, match="must return a str, got coroutine"):
        secret.reveal()
    with pytest.raises(TypeError, match="must return a str, got bytes"):
        await Secret(lambda: b"hunter2").areveal()  # type: ignore[arg-type, return-value]
    assert await Secret("hush").areveal() == await Secret(lambda: "hush").areveal() == "hush"
    assert not Secret("hush").is_function
    assert not Secret(lambda: "hush").is_async


@pytest.mark.parametrize("given", [None, 3, b"hunter2"])
def test_what_cannot_be_a_secret_is_refused_without_being_shown(given: Any) -> None:
    with pytest.raises(TypeError, match="a Secret must be a str, or a function") as caught:
        Secret(given)
    assert "hunter2" not in str(caught.value)


def test_a_secret_made_in_code_passes() -> None:
    assert one(Secret, Secret("hunter2")).reveal() == "hunter2"
    assert one(Secret | None, None) is None


@pytest.mark.parametrize(
    ("environ", "state"), [({}, "which is not set; set it"), ({"KEY": ""}, "which is empty; set it")]
)
def test_a_missing_variable_is_one_of_the_problems(environ: dict[str, str], state: str) -> None:
    with pytest.raises(SettingsError) as caught:
        audit({"key": {"env": "KEY"}}, environ=environ)

    assert caught.value.problems == (
        f"file0: t.key takes its secret from the environment variable KEY, {state}",
        "file0: t.path is missing; expected a path",
    ) or caught.value.problems == (
        "file0: t.path is missing; expected a path",
        f"file0: t.key takes its secret from the environment variable KEY, {state}",
    )


@pytest.mark.parametrize("kind", [Secret, Secret | None, tuple[Secret, ...], dict[str, Secret], Secret | int])
@pytest.mark.parametrize("value", ["hunter2", {"env": 2, "plain": "hunter2"}, ["hunter2"], {"a": "hunter2"}])
def test_what_might_be_a_secret_is_not_shown_when_it_is_refused(kind: Any, value: Any) -> None:
    lines = "\n".join(problems(kind, value))

    assert "hunter2" not in lines
    assert "expected" in lines


def test_an_unknown_setting_is_not_shown_for_it_may_be_a_misspelled_secret() -> None:
    with pytest.raises(SettingsError) as caught:
        audit({"path": "p", "kee": "hunter2"})

    assert "hunter2" not in str(caught.value)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
TABLES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


@given(st.dictionaries(st.sampled_from(["path", "mode", "max_calls", "key", "limits", "names", "other"]), TABLES))
def test_any_table_either_is_read_or_is_refused_with_reasons(table: dict[str, Any]) -> None:
    refused: tuple[str, ...] = ()
    try:
        read = audit(table)
    except SettingsError as e:
        refused = e.problems
    else:
        assert set(table) <= {"path", "mode", "max_calls", "key", "limits", "names"}
        assert type(read.max_calls) is int
    assert all(line.startswith("file0: t") for line in refused)
    assert bool(refused) or "other" not in table


def test_a_setting_that_is_text_or_a_secret_says_which_variable_is_missing() -> None:
    @frozen
    class Headers:
        values: Mapping[str, str | Secret]

    layer = Layer("locus.toml", "", {"values": {"a": "plain", "b": {"env": "KEY"}}})

    assert structure(Headers, [layer], {"KEY": "hush"}).values["b"] == Secret("hush")
    with pytest.raises(SettingsError, match=r"values\.b takes its secret from the environment variable KEY, which is"):
        structure(Headers, [layer], {})
