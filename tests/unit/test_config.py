"""``locus.toml`` and ``[tool.locus]``: where they are found, what they may hold, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from attrs import evolve
from tests.unit.toy_plugins import shelf

from locus import Agent
from locus.config import Config, find_config, load_config
from locus.core.errors import ConfigError, SettingsError
from locus.journal import MemoryStore
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import Plugin
from locus_testkit import ScriptedModel

__all__ = ["shelf"]

#: What `keep` has made, by what stands behind the plugin's name.
KEPT: dict[str, MemoryStore] = {}


def keep(rest: str, settings: object) -> MemoryStore:
    """A store that a plugin provides."""
    return KEPT.setdefault(rest, MemoryStore())


FULL = """
required = ["guard"]

[plugins]
enabled = ["audit", "guard"]

[plugins.audit]
level = "INFO"

[agent]
model = "acme:large"
system_prompt = "Be brief."
max_iterations = 12
"""


def written(folder: Path, text: str, name: str = "locus.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_which_plugins_with_which_settings_and_what_agents_default_to(tmp_path: Path) -> None:
    path = written(tmp_path, FULL)

    config = load_config(find_config(tmp_path), environ={"LOCUS_PLUGINS": "no:audit"})

    assert config.source == str(path)
    assert (config.enabled, config.required, config.env) == (("audit", "guard"), ("guard",), "no:audit")
    assert config.agent == {"model": "acme:large", "system_prompt": "Be brief.", "max_iterations": 12}
    (layer,) = config.plugin_settings.values()
    assert (layer.source, layer.path, layer.values) == (str(path), "plugins.audit", {"level": "INFO"})


def test_an_agent_without_a_checkpointer_takes_the_configured_one(tmp_path: Path) -> None:
    plugin = Plugin(name="kept", api=(1, 0), summary="Keeps.", provides={"checkpointer": f"{__name__}:keep"})
    config = load_config(written(tmp_path, '[agent]\ncheckpointer = "kept:here"\n'), environ={})
    KEPT.clear()

    def run(given: MemoryStore | None = None) -> None:
        model = ScriptedModel("Hi.")
        Agent(model, config=config, catalogue=Catalogue.only(plugin), checkpointer=given).run_sync("x")

    run(MemoryStore())
    assert KEPT == {}
    run()
    assert [*KEPT] == ["here"]
    assert len(anyio.run(KEPT["here"].threads)) == 1


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("kept:runs.db", "{folder}/runs.db"),
        ("runs.db", "{folder}/runs.db"),
        ("kept:more/runs", "{folder}/more/runs"),
        ("kept:../runs.db", "{folder}/../runs.db"),
        ("kept:/tmp/runs.db", "/tmp/runs.db"),
        ("kept:~/runs.db", "~/runs.db"),
        ("kept::memory:", ":memory:"),
        ("kept://host/db", "//host/db"),
        ("kept:", ""),
        ("served:host/db", "host/db"),
    ],
)
def test_a_relative_path_in_a_file_counts_from_its_folder(
    text: str, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provides = {"checkpointer": f"{__name__}:keep"}
    plugins = Catalogue.only(
        Plugin(name="kept", api=(1, 0), summary="Files.", provides=provides, suffixes=(".db",)),
        Plugin(name="served", api=(1, 0), summary="No files.", provides=provides),
    )
    (tmp_path / "below").mkdir()
    written(tmp_path, f'[agent]\ncheckpointer = "{text}"\n')
    monkeypatch.chdir(tmp_path / "below")
    KEPT.clear()

    Agent(ScriptedModel(), config=load_config(find_config(), environ={}), catalogue=plugins)

    assert [*KEPT] == [rest.format(folder=tmp_path)]


def test_a_relative_path_in_code_counts_from_the_working_directory(tmp_path: Path) -> None:
    plugin = Plugin(
        name="kept", api=(1, 0), summary="Files.", provides={"checkpointer": f"{__name__}:keep"}, suffixes=(".db",)
    )
    config = load_config(written(tmp_path, '[agent]\ncheckpointer = "kept:other.db"\n'), environ={})
    KEPT.clear()

    Agent(ScriptedModel(), config=config, catalogue=Catalogue.only(plugin), checkpointer="kept:runs.db")

    assert [*KEPT] == ["runs.db"]


def test_the_same_tables_work_in_a_pyproject(tmp_path: Path) -> None:
    text = FULL.replace("[plugins", "[tool.locus.plugins").replace("[agent]", "[tool.locus.agent]")
    path = written(tmp_path, f"[project]\nname = 'x'\n[tool.locus]\n{text}", "pyproject.toml")

    config = load_config(find_config(tmp_path), environ={})

    assert config.required == ("guard",)
    assert config.agent["max_iterations"] == 12
    assert config.plugin_settings["audit"].path == "tool.locus.plugins.audit"
    assert load_config(path, environ={}) == config


def test_without_a_file_nothing_is_configured_but_the_environment(tmp_path: Path) -> None:
    written(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml")

    assert load_config(start=tmp_path, environ={"LOCUS_PLUGINS": "audit"}) == Config(env="audit")


def test_the_nearest_directory_upwards_that_has_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, '[agent]\nmodel = "far:x"\n')
    near = written(tmp_path / "a", '[agent]\nmodel = "near:x"\n')
    written(tmp_path / "a" / "b", "[tool.other]\n", "pyproject.toml")
    below = tmp_path / "a" / "b" / "c"
    below.mkdir()

    monkeypatch.chdir(below)

    assert load_config(find_config(), environ={}).source == str(near)


def test_both_kinds_of_file_in_one_directory_are_an_error_that_names_both(tmp_path: Path) -> None:
    own = written(tmp_path, FULL)
    shared = written(tmp_path, "[tool.locus]\n", "pyproject.toml")

    with pytest.raises(ConfigError) as caught:
        load_config(start=tmp_path, environ={})

    assert str(own) in str(caught.value)
    assert str(shared) in str(caught.value)


def test_a_file_that_is_named_wins_over_what_lies_around(tmp_path: Path) -> None:
    written(tmp_path, FULL)
    other = written(tmp_path / "etc", '[agent]\nmodel = "other:x"\n', "prod.toml")

    assert load_config(other, start=tmp_path, environ={}).agent == {"model": "other:x"}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("plugin = 1", ["plugin is not a setting; did you mean 'plugins'?"]),
        ("zzz = 1", ["zzz is not a setting; known: agent, allow, plugins, required"]),
        ("required = 'guard'", ["required is 'guard'; expected a list"]),
        ("required = [1]", ["required[0] is 1; expected text"]),
        ("plugins = []", ["plugins is []; expected a table"]),
        ("plugins = {enabled = 'audit'}", ["plugins.enabled is 'audit'; expected a list of names"]),
        ("plugins = {enabled = [1]}", ["plugins.enabled is [1]; expected a list of names"]),
        (
            "plugins = {enable = ['audit'], audit = 3}",
            [
                "plugins.enable is ['audit']; expected a table of that plugin's settings; did you mean 'enabled'?",
                "plugins.audit is 3; expected a table of that plugin's settings",
            ],
        ),
        (
            "agent = {modle = 'x', max_iterations = 0}",
            [
                "agent.modle is not a setting; did you mean 'model'?",
                "agent.max_iterations is 0: max_iterations must be 1 or more, got 0",
            ],
        ),
        ("agent = {max_iterations = '7'}", ["agent.max_iterations is '7'; expected an integer"]),
    ],
)
def test_everything_that_is_wrong_in_a_file_is_said_with_the_file(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(SettingsError) as caught:
        load_config(path, environ={})

    assert caught.value.problems == tuple(f"{path}: {problem}" for problem in problems)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[agent\n", "is not valid TOML: "),
        (b"[agent]\nmodel = 'caf\xe9'", "is not valid TOML: "),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "locus.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        load_config(path, environ={})

    assert f"{path} {message}" in str(caught.value)


def test_a_pyproject_without_the_table_is_refused_when_it_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml")

    with pytest.raises(ConfigError, match=r"has no \[tool\.locus\] table"):
        load_config(path, environ={})


def test_what_takes_precedence_over_the_file_joins_what_is_wanted(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL), environ={"LOCUS_PLUGINS": "beacon"})

    wanted = evolve(config, cli=("x",)).plugin_request(plugins=("no:audit",), keywords={"level": 1}, strict=True)

    assert (wanted.enabled, wanted.required, wanted.env, wanted.cli) == (
        ("audit", "guard"),
        ("guard",),
        "beacon",
        ("x",),
    )
    assert (wanted.plugins, wanted.keywords, wanted.strict) == (("no:audit",), {"level": 1}, True)
    assert wanted.tables == config.plugin_settings
