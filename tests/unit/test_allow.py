"""``allow``: which distributions plugins may come from; of the others nothing is ever imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.toy_plugins import Shelf, shelf

from locus import Agent
from locus.config import Config, load_config
from locus.core.errors import ConfigError, PluginError, PluginNotAllowed, SettingsError
from locus.plugins import Catalogue
from locus.plugins.activation import PluginRequest, activate
from locus_testkit import ScriptedModel

__all__ = ["shelf"]

#: What a stranger's plugin does when it is imported.
TRAP = "raise SystemExit('imported')"


@pytest.mark.parametrize(
    ("allow", "allowed"),
    [
        (["toy-audit"], True),
        (["toy-audit:audit"], True),
        (["Toy_Audit"], True),
        (["toy.audit:audit"], True),
        (["toy-audit:other"], False),
        (["audit"], False),
        (["toy-audit-extra"], False),
        ([], False),
        (["*"], False),
        (["other", "toy-audit"], True),
    ],
)
def test_an_item_names_a_distribution_and_maybe_one_plugin_of_it(shelf: Shelf, allow: list[str], allowed: bool) -> None:
    shelf.plugin("audit")
    catalogue = Catalogue().allowing(allow)

    if allowed:
        assert catalogue.manifest("audit").name == "audit"
    else:
        with pytest.raises(PluginNotAllowed, match=r"of toy-audit 1\.0, which is not allowed; add 'toy-audit:audit'"):
            catalogue.manifest("audit")


def test_the_name_of_a_plugin_means_the_distribution_that_is_named_after_it(shelf: Shelf) -> None:
    shelf.plugin("sea_lion", dist="locus-plugin-sea-lion")
    shelf.plugin("audit", dist="somebody-elses")
    catalogue = Catalogue().allowing(["sea_lion", "audit"])

    assert catalogue.manifest("sea_lion").name == "sea_lion"
    with pytest.raises(PluginNotAllowed):
        catalogue.manifest("audit")


def test_nothing_of_what_is_not_allowed_is_imported_whatever_is_asked(shelf: Shelf) -> None:
    shelf.plugin("audit", provides="{'model': 'toy_audit:make'}", suffixes="('.db',)")
    shelf.plugin("trap", manifest=TRAP)
    catalogue = Catalogue().allowing(["toy-audit"])

    assert [m.name for m in catalogue.manifests()] == ["audit"]
    assert catalogue.takes("model", ".db") == ("audit",)
    assert {r.name: r.status for r in catalogue.status() if r.name in ("audit", "trap")} == {
        "audit": "available",
        "trap": "disabled",
    }
    with pytest.raises(PluginNotAllowed):
        catalogue.provides("model", "trap")
    assert "trap" in catalogue.names()
    assert "toy_trap" not in shelf.imported()


@pytest.mark.parametrize("asked", [{"enabled": ("trap",)}, {"env": "trap"}, {"cli": ("trap",)}, {"plugins": ("trap",)}])
def test_a_plugin_that_is_asked_for_and_not_allowed_is_an_error_and_not_left_out(
    shelf: Shelf, asked: dict[str, object]
) -> None:
    shelf.plugin("trap", manifest=TRAP)

    with pytest.raises(PluginNotAllowed):
        activate(PluginRequest(allow=("toy-audit",), **asked))  # type: ignore[arg-type]  # a table of cases
    assert "toy_trap" not in shelf.imported()


def test_an_agent_keeps_to_it_for_everything_that_plugins_bring(shelf: Shelf, tmp_path: Path) -> None:
    shelf.plugin("trap", manifest=TRAP)
    (tmp_path / "locus.toml").write_text('allow = ["toy-audit"]\n')
    config = load_config(tmp_path / "locus.toml", environ={})

    with pytest.raises(PluginNotAllowed):
        Agent("trap:large", config=config)
    with pytest.raises(PluginNotAllowed):
        Agent(ScriptedModel(), checkpointer="trap:here", config=config)
    assert "toy_trap" not in shelf.imported()


def test_a_rival_that_is_not_allowed_takes_nothing_from_the_one_that_is(shelf: Shelf) -> None:
    shelf.plugin("audit")
    shelf.dist("rival", {"audit": "toy_trap:plugin"})
    shelf.module("toy_trap", TRAP)

    with pytest.raises(PluginError, match="more than one distribution provides it"):
        Catalogue().manifest("audit")
    allowed = Catalogue().allowing(["toy-audit"])
    assert allowed.manifest("audit").name == "audit"
    assert allowed.version("audit") == "1.0"


def test_several_lists_must_all_agree(shelf: Shelf) -> None:
    shelf.plugin("audit")
    shelf.plugin("beacon")

    catalogue = Catalogue().allowing(["toy-audit", "toy-beacon"]).allowing(["toy-audit"])

    assert catalogue.manifest("audit").name == "audit"
    with pytest.raises(PluginNotAllowed):
        catalogue.manifest("beacon")


def test_a_list_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "locus.toml").write_text('allow = "toy-audit"\n')

    with pytest.raises(SettingsError, match="allow is 'toy-audit'; expected a list"):
        load_config(tmp_path / "locus.toml", environ={})


def test_without_a_list_everything_is_allowed(shelf: Shelf) -> None:
    shelf.plugin("audit")

    assert Config().allow is None
    assert Catalogue().allowing(None).manifest("audit").name == "audit"


def test_what_is_installed_changes_nothing_until_it_is_asked_for(shelf: Shelf) -> None:
    shelf.plugin("trap", manifest=TRAP)
    shelf.plugin("audit")

    Agent(ScriptedModel("hi"))
    Agent(ScriptedModel("hi"), plugins=["audit"], config=Config())

    assert shelf.imported() == {"toy_audit"}


def test_where_a_plugin_comes_from_is_known_without_importing_it(shelf: Shelf) -> None:
    shelf.plugin("trap", manifest=TRAP)

    [source] = Catalogue().sources("trap")

    assert (source.distribution, source.version, source.reference) == ("toy-trap", "1.0", "toy_trap:plugin")
    assert Catalogue().sources("nothing") == ()
    assert shelf.imported() == set()


def test_who_says_so_is_the_configuration_alone() -> None:
    with pytest.raises(ConfigError):
        Agent(ScriptedModel(), allow=["x"])
