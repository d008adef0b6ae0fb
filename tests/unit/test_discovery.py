"""Finding plugins: names without loading, one manifest at a time, and no broken one in anybody's way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import importlib_metadata
import pytest
from tests.unit.toy_plugins import Shelf, shelf

from locus.core.errors import PluginError, PluginIncompatible, PluginLoadError, UnknownName
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import API, Plugin

__all__ = ["shelf"]


def test_names_are_listed_without_loading_anything(shelf: Shelf) -> None:
    shelf.plugin("audit")
    shelf.plugin("beacon", manifest="raise RuntimeError('at import')")

    assert {"audit", "beacon"} <= set(Catalogue().names())
    assert shelf.imported() == set()


def test_a_manifest_is_loaded_when_it_is_asked_for_and_no_other_with_it(shelf: Shelf) -> None:
    shelf.plugin("audit", version="1.2", hooks="", settings="'toy_audit_settings:Settings'")
    shelf.plugin("beacon")
    catalogue = Catalogue()

    manifest = catalogue.manifest("audit")

    assert (manifest.name, manifest.summary, catalogue.version("audit")) == ("audit", "A toy.", "1.2")
    assert shelf.imported() == {"toy_audit"}
    assert catalogue.manifest("audit") is manifest


def test_a_scan_is_made_once_and_another_catalogue_sees_what_is_new(shelf: Shelf) -> None:
    shelf.plugin("audit")
    first = Catalogue()
    assert "beacon" not in first.names()

    shelf.plugin("beacon")

    assert "beacon" not in first.names()
    assert "beacon" in Catalogue().names()


def test_a_scan_is_kept_until_the_path_changes(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.plugin("audit")
    monkeypatch.setattr(sys, "path", [str(shelf.path)])
    read_text = importlib_metadata.PathDistribution.read_text
    files: list[str] = []

    def count(self: importlib_metadata.PathDistribution, filename: str) -> str | None:
        files.append(filename)
        return read_text(self, filename)

    def names() -> tuple[tuple[str, ...], int]:
        files.clear()
        return Catalogue().names(), len(files)

    monkeypatch.setattr(importlib_metadata.PathDistribution, "read_text", count)
    # What changed just now may change again at the same time: nothing is kept.
    assert names()[1] > 0
    assert names()[1] > 0

    os.utime(shelf.path, (1, 1))
    assert names()[1] > 0
    assert names() == (("audit",), 0)

    shelf.plugin("beacon")
    assert names()[0] == ("audit", "beacon")

    os.utime(shelf.path, (2, 2))
    assert names()[0] == ("audit", "beacon")
    shutil.rmtree(shelf.path / "toy_beacon-1.0.dist-info")
    os.utime(shelf.path, (3, 3))
    assert names()[0] == ("audit",)


def test_a_look_up_that_is_put_in_its_place_is_always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(group: str) -> list[object]:
        asked.append(group)
        return []

    monkeypatch.setattr(importlib_metadata, "entry_points", look_up)
    monkeypatch.setattr(sys, "path", [])
    assert [Catalogue().names(), Catalogue().names()] == [(), ()]
    assert len(asked) == 2


def test_a_finder_of_another_kind_is_always_asked(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder(importlib_metadata.MetadataPathFinder):
        def find_distributions(self, context: object = None) -> list[importlib_metadata.Distribution]:  # type: ignore[override]
            asked.append(context)
            return []

    asked: list[object] = []
    monkeypatch.setattr(sys, "path", [str(shelf.path), "\0", None])
    monkeypatch.setattr(sys, "meta_path", [Finder()])
    os.utime(shelf.path, (1, 1))
    Catalogue().names()
    before = len(asked)
    Catalogue().names()
    assert len(asked) > before


def test_a_misspelled_name_comes_with_the_nearest_and_no_advice_to_install_it(shelf: Shelf) -> None:
    shelf.plugin("audit")

    with pytest.raises(UnknownName) as caught:
        Catalogue().manifest("audti")

    assert str(caught.value) == "unknown plugin 'audti'; did you mean 'audit'?"
    assert caught.value.name == "audti"


@pytest.mark.parametrize("name", ["beacon", "Sea_Lion", "*"])
def test_no_advice_to_install_comes_with_an_unknown_name(shelf: Shelf, name: str) -> None:
    shelf.plugin("audit")

    with pytest.raises(UnknownName) as caught:
        Catalogue().manifest(name)

    known = Catalogue().names()
    assert "audit" in known
    assert f"unknown plugin {name!r}; known: {', '.join(known)}" in str(caught.value)
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import toy_not_installed", "ModuleNotFoundError: No module named 'toy_not_installed'; install what it needs"),
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('no display')", "RuntimeError: no display"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("other = 1", "'toy_audit' has no 'plugin'"),
        ("plugin = 42", "its entry point toy_audit:plugin is 42; it must be a locus.plugin.Plugin"),
        (
            "from locus.plugin import Plugin\nplugin = Plugin(name='adit', api=(1, 0), summary='')",
            "its manifest is named 'adit'; entry point and manifest must have one name",
        ),
        (
            "from locus.plugin import Plugin\nplugin = Plugin(name='Audit!', api=(1, 0), summary='')",
            "name is 'Audit!'; use lower-case letters, digits and '_'",
        ),
    ],
)
def test_a_manifest_that_cannot_be_used_is_that_plugins_error_alone(shelf: Shelf, source: str, message: str) -> None:
    shelf.plugin("audit", manifest=source)
    shelf.plugin("beacon")
    catalogue = Catalogue()

    with pytest.raises(PluginLoadError) as caught:
        catalogue.manifest("audit")

    assert message in str(caught.value)
    assert caught.value.plugin == "audit"
    assert catalogue.manifest("beacon").name == "beacon"
    status = {report.name: report for report in catalogue.status()}
    assert (status["audit"].status, status["beacon"].status) == ("failed", "available")
    assert message in status["audit"].detail


def test_the_traceback_of_a_failed_import_is_kept(shelf: Shelf) -> None:
    shelf.plugin("audit", manifest="raise RuntimeError('no display')")

    (report,) = [r for r in Catalogue().status() if r.name == "audit"]

    assert "RuntimeError: no display" in report.trace
    assert "\n" not in report.detail


MAJOR, MINOR = API


@pytest.mark.parametrize("api", [(MAJOR, MINOR), (MAJOR, 0)])
def test_an_api_version_that_we_have_is_accepted(shelf: Shelf, api: tuple[int, int]) -> None:
    shelf.plugin("audit", api=repr(api))

    assert Catalogue().manifest("audit").api == api


@pytest.mark.parametrize(
    ("api", "advice"), [((MAJOR + 1, 0), "locus-core"), ((MAJOR, MINOR + 1), "locus-core"), ((0, 9), "the plugin")]
)
def test_an_api_version_that_does_not_fit_is_refused_with_both_numbers(
    shelf: Shelf, api: tuple[int, int], advice: str
) -> None:
    shelf.plugin("audit", api=repr(api))
    catalogue = Catalogue()

    with pytest.raises(PluginIncompatible) as caught:
        catalogue.manifest("audit")

    expected = f"written for plugin API {api[0]}.{api[1]}, this is {MAJOR}.{MINOR}; upgrade {advice}"
    assert expected in str(caught.value)
    assert [r.status for r in catalogue.status() if r.name == "audit"] == ["incompatible"]


@pytest.mark.parametrize("api", ["'1.0'", "(1,)", "(1, True)", "1", "None"])
def test_an_invalid_api_version_is_refused_and_not_guessed(shelf: Shelf, api: str) -> None:
    shelf.plugin("audit", api=api)

    with pytest.raises(PluginIncompatible, match=r"it must be \(major, minor\)"):
        Catalogue().manifest("audit")


def test_two_distributions_with_one_name_are_an_error_that_lists_both_and_hurts_nobody_else(shelf: Shelf) -> None:
    shelf.plugin("audit", version="1.0")
    shelf.dist("rival", {"audit": "toy_rival:plugin"}, version="7.1")
    shelf.plugin("beacon")
    catalogue = Catalogue()

    with pytest.raises(PluginError, match=r"rival 7\.1 and toy-audit 1\.0; uninstall all but one"):
        catalogue.manifest("audit")

    assert catalogue.manifest("beacon").name == "beacon"
    assert shelf.imported() == {"toy_beacon"}


def test_a_distribution_that_is_hidden_earlier_on_the_path_does_not_count(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shelf.plugin("audit", version="1.0")
    newer = Shelf(tmp_path_factory.mktemp("newer"))
    monkeypatch.syspath_prepend(str(newer.path))
    newer.plugin("audit", version="2.0")

    catalogue = Catalogue()

    assert catalogue.manifest("audit").name == "audit"
    assert catalogue.version("audit") == "2.0"


def test_entry_points_of_other_groups_are_ignored(shelf: Shelf) -> None:
    shelf.dist("other", {"audit": "toy_audit:plugin"}, group="console_scripts")

    assert "audit" not in Catalogue().names()


def test_extras_behind_an_entry_point_do_not_matter(shelf: Shelf) -> None:
    shelf.plugin("audit")
    shelf.dist("extra", {"beacon": "toy_beacon:plugin [fast]"})
    shelf.module(
        "toy_beacon", "from locus.plugin import Plugin\nplugin = Plugin(name='beacon', api=(1, 0), summary='')"
    )

    assert Catalogue().manifest("beacon").name == "beacon"


def test_what_a_plugin_provides_is_a_reference_that_is_not_imported(shelf: Shelf) -> None:
    shelf.plugin("acme", provides="{'model': 'toy_acme_heavy:make'}")

    assert Catalogue().provides("model", "acme") == "toy_acme_heavy:make"
    assert shelf.imported() == {"toy_acme"}


def test_an_unknown_provider_is_compared_with_those_that_provide_the_kind(shelf: Shelf) -> None:
    shelf.plugin("acme", provides="{'model': 'toy_acme:make'}")
    shelf.plugin("acne")
    shelf.plugin("broken", manifest="raise RuntimeError")

    with pytest.raises(UnknownName, match="unknown model provider 'acmee'; did you mean 'acme'"):
        Catalogue().provides("model", "acmee")
    with pytest.raises(UnknownName, match="the plugin is installed and provides no model"):
        Catalogue().provides("model", "acne")
    with pytest.raises(PluginLoadError, match="RuntimeError"):
        Catalogue().provides("model", "broken")


def test_a_closed_catalogue_knows_what_it_was_given_and_discovers_nothing(shelf: Shelf) -> None:
    shelf.plugin("audit")
    mine = Plugin(name="mine", api=(1, 0), summary="Made here.")
    new = Plugin(name="future", api=(MAJOR, MINOR + 1), summary="Made tomorrow.")

    catalogue = Catalogue.only(mine, new)

    assert catalogue.names() == ("future", "mine")
    assert catalogue.manifest("mine") is mine
    assert [(r.name, r.status, r.version) for r in catalogue.status()] == [
        ("future", "incompatible", ""),
        ("mine", "available", ""),
    ]


def test_a_manifest_given_in_code_hides_an_installed_one_and_leaves_the_catalogue_alone(shelf: Shelf) -> None:
    shelf.plugin("audit", version="1.0")
    mine = Plugin(name="audit", api=(1, 0), summary="Made here.")
    catalogue = Catalogue()

    extended = catalogue.with_manifests([mine])

    assert extended.manifest("audit") is mine
    assert extended.version("audit") == ""
    assert catalogue.manifest("audit").summary == "A toy."


PROBE = """
import json, sys
import locus
before = sorted(m for m in ("importlib_metadata", "importlib.metadata", "tomllib") if m in sys.modules)
from locus.plugins.discovery import Catalogue
catalogue = Catalogue()
names = catalogue.names()
listed = sorted(m for m in sys.modules if m.startswith("toy_"))
catalogue.manifest("quick")
loaded = sorted(m for m in sys.modules if m.startswith("toy_"))
print(json.dumps([before, [n for n in names if n in ("quick", "slow")], listed, loaded]))
"""


def test_nothing_is_scanned_by_an_import_and_a_slow_plugin_costs_nobody_anything(shelf: Shelf) -> None:
    shelf.plugin("quick", hooks="raise AssertionError('the hooks are not asked for')")
    shelf.plugin("slow", manifest="while True: pass")

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{PROBE}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    before, names, listed, loaded = json.loads(done.stdout)
    assert before == []
    assert names == ["quick", "slow"]
    assert listed == []
    assert loaded == ["toy_quick"]
