"""``locus plugins``: the list, one plugin, the order of a hook, the doctor. And commands that plugins bring."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]
Install = Callable[..., Path]

GUARD = """
from locus.plugin import Plugin, hookimpl

plugin = Plugin(name="watch", api=(1, 0), summary="Watches.", hooks=("watching:Watch",), guard=True, after=("toy",))

class Watch:
    @hookimpl
    def locus_on_run_start(self, event): ...
    @hookimpl
    def locus_on_event(self, event): ...
"""


@pytest.fixture
def watch(site: Path, here: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second plugin, a guard that comes after the toy."""
    install(site, "watching", "watching.py", points="watch = watching:plugin")
    (site / "watching.py").write_text(GUARD)
    monkeypatch.delitem(sys.modules, "watching", raising=False)


@pytest.fixture
def broken(site: Path, install: Install) -> None:
    """Plugins that cannot be used, each in its own way."""
    install(site, "gone", points="gone = no_such_module:plugin")
    install(site, "newer", "newer_plugin.py", points="newer = newer_plugin:plugin")
    (site / "newer_plugin.py").write_text(
        'from locus.plugin import Plugin\nplugin = Plugin(name="newer", api=(99, 0), summary="Newer.")\n'
    )
    install(site, "liar", "lying.py", points="liar = lying:plugin")
    (site / "lying.py").write_text(
        "from locus.plugin import Plugin\n"
        'plugin = Plugin(name="liar", api=(1, 0), summary="Lies.", hooks=("lying:Hooks",), '
        'provides={"model": "lying:nothing"})\n'
        "class Hooks:\n    def locus_on_thnik(self): ...\n"
        "from locus.plugin import hookimpl\nHooks.locus_on_thnik = hookimpl(Hooks.locus_on_thnik)\n"
    )


def rows(out: str) -> dict[str, list[str]]:
    """The cells of a table by the first one."""
    cells = [line.split("\t") for line in out.splitlines()]
    return {row[0]: row[1:] for row in cells}


# --- list ---------------------------------------------------------------------------------------


def test_list_tells_what_is_installed_and_what_is_active(locus: Locus, watch: None) -> None:
    found = rows(locus("plugins", "-p", "toy").out)

    assert found["toy"][:4] == ["1.0", "active", "Scripted models, for tests.", "toy"]
    assert found["watch"][:3] == ["1.0", "available guard", "Watches."]
    assert "cli" in found


def test_broken_plugins_are_lines_in_the_list(locus: Locus, broken: None) -> None:
    done = locus("plugins")

    found = rows(done.out)
    assert done.status == 0
    assert found["gone"][1] == "failed"
    assert "No module named 'no_such_module'" in found["gone"][2]
    assert found["newer"][1] == "incompatible"
    assert "99.0" in found["newer"][2]
    assert "Traceback" not in done.out + done.err


def test_verbose_shows_the_traceback_behind_it(locus: Locus, broken: None) -> None:
    assert "ModuleNotFoundError" in locus("plugins", "-v").err


def test_missing_plugin_of_the_configuration_is_listed(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins]\nenabled = ["nope"]\n')

    assert rows(locus("plugins").out)["nope"][1] == "missing"


def test_wrong_configuration_does_not_hide_the_list(locus: Locus, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins]\nenabled = ["toy"]\n[plugins.toy]\nlevel = "x"\n')

    done = locus("plugins")

    assert done.status == 2
    assert "plugins.toy.level" in done.err
    assert rows(done.out)["toy"][1] == "available"


def test_list_as_json(locus: Locus, watch: None) -> None:
    found = {row["name"]: row for row in json.loads(locus("plugins", "--json").out)}

    assert found["watch"]["guard"] is True
    assert found["toy"]["version"] == "1.0"


# --- show ---------------------------------------------------------------------------------------


def test_show_tells_everything_of_one_plugin(locus: Locus) -> None:
    out = locus("plugins", "show", "toy").out

    assert "toy 1.0\nScripted models, for tests.\n" in out
    assert "  model -> toy_provider:make\n" in out
    assert "  toy_provider:Told: locus_on_run_start, locus_register_commands\n" in out
    assert "  level (int) = 1: how much.\n" in out


def test_show_as_json(locus: Locus) -> None:
    shown = json.loads(locus("plugins", "show", "toy", "--json").out)

    assert shown["settings"][0] == {"name": "level", "type": "int", "default": "1", "note": "how much."}
    assert json.loads(locus("plugins", "--json", "show", "toy").out) == shown


def test_show_of_a_plugin_with_a_broken_hook_says_so(locus: Locus, broken: None) -> None:
    done = locus("plugins", "show", "liar")

    assert done.status == 1
    assert "liar 1.0\nLies.\n" in done.out
    assert "PROBLEM: " in done.out
    assert "did you mean 'locus_on_think'?" in done.out
    assert len(json.loads(locus("plugins", "show", "liar", "--json").out)["problems"]) == 2


def test_show_of_a_plugin_whose_hooks_cannot_be_imported_says_so(
    locus: Locus, site: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "torn", "torn.py", points="torn = torn:plugin")
    (site / "torn.py").write_text(
        'from locus.plugin import Plugin\nplugin = Plugin(name="torn", api=(1, 0), summary="Torn.", '
        'hooks=("torn_hooks",), settings="torn_hooks:Settings")\n'
    )
    (site / "torn_hooks.py").write_text("import no_such_module\n")

    done = locus("plugins", "show", "torn")

    assert (done.status, done.err) == (1, "")
    assert done.out.startswith("torn 1.0\nTorn.\n")
    assert "no_such_module" in done.out


def test_show_of_an_unknown_plugin_names_the_nearest(locus: Locus) -> None:
    done = locus("plugins", "show", "tyo")

    assert done.status == 2
    assert "unknown plugin 'tyo'; did you mean 'toy'?" in done.err


# --- order --------------------------------------------------------------------------------------


def test_order_is_that_in_which_hooks_are_called(locus: Locus, watch: None) -> None:
    done = locus("plugins", "order", "locus_on_run_start", "-p", "watch", "-p", "toy")

    assert [line.split("\t")[:3] for line in done.out.splitlines()] == [
        ["1", "toy", "locus_on_run_start"],
        ["2", "watch", "locus_on_run_start"],
        ["3", "watch", "locus_on_event"],
    ]
    assert done.out.splitlines()[1].endswith("guard")


def test_order_of_a_hook_that_nobody_implements_says_so(locus: Locus) -> None:
    done = locus("plugins", "order", "on_reflect")

    assert (done.status, done.out) == (0, "")
    assert "no active plugin implements it" in done.err


def test_order_of_an_unknown_hook_names_the_nearest(locus: Locus) -> None:
    done = locus("plugins", "order", "on_run_strat")

    assert done.status == 2
    assert "did you mean 'locus_on_run_start'?" in done.err


# --- doctor -------------------------------------------------------------------------------------


def test_doctor_is_content_with_what_works(locus: Locus, watch: None) -> None:
    done = locus("plugins", "doctor")

    assert done.status == 0, done.out
    assert "PROBLEM" not in done.out


def test_doctor_finds_a_chosen_model_that_nobody_provides(locus: Locus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MODEL", "tyo:echo")

    done = locus("plugins", "doctor")

    assert done.status == 1
    assert "PROBLEM\tdefault model\tLOCUS_MODEL: unknown model provider 'tyo'; did you mean 'toy'?" in done.out


def test_doctor_tells_of_what_the_environment_names_in_vain(locus: Locus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_PLUGINS", "toyy")

    assert "configuration\tLOCUS_PLUGINS: unknown plugin 'toyy'; did you mean 'toy'?" in locus("plugins", "doctor").out


def test_doctor_finds_what_only_use_would_show(locus: Locus, broken: None, here: Path) -> None:
    (here / "locus.toml").write_text('[plugins.toy]\nlevel = "x"\n')

    done = locus("plugins", "doctor", "--json")

    problems: dict[str, str] = {}
    for finding in json.loads(done.out):
        problems[finding["subject"]] = problems.get(finding["subject"], "") + finding["problem"]
    assert done.status == 1
    assert "no_such_module" in problems["gone"]
    assert "99.0" in problems["newer"]
    assert "did you mean 'locus_on_think'?" in problems["liar"]
    assert "'nothing'" in problems["liar"]
    assert "plugins.toy.level" in problems["configuration"]
    assert problems["toy"] == ""


def test_doctor_tries_in_full_what_it_is_asked_about(
    locus: Locus, site: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "sick", "sick.py", points="sick = sick:plugin")
    (site / "sick.py").write_text(
        "from locus.plugin import Plugin\n"
        'plugin = Plugin(name="sick", api=(1, 0), summary="Sick.", provides={"doctor": "sick:examine"})\n'
        "async def examine(settings, wanted):\n"
        '    return [("one", "", "fine"), (wanted, "cannot start\\nline 1\\nline 2", "")]\n'
    )
    monkeypatch.delitem(sys.modules, "sick", raising=False)

    done = locus("plugins", "doctor", "sick:two", "toy")

    assert done.status == 1
    assert [line.split("\t") for line in done.out.splitlines()[:4]] == [
        ["ok", "sick", ""],
        ["ok", "sick:one", "fine"],
        ["PROBLEM", "sick:two", "cannot start"],
        ["ok", "toy", ""],
    ]
    assert done.out.endswith("\nsick:two:\nline 1\nline 2\n")
    assert locus("plugins", "doctor", "toy").out == "ok\ttoy\t\n"
    assert "did you mean 'sick'?" in locus("plugins", "doctor", "sikc").err
    assert "'toy' has nothing to try beside itself" in locus("plugins", "doctor", "toy:x").err


def test_doctor_finds_another_package_of_the_same_name(locus: Locus, site: Path, install: Install) -> None:
    install(site, "locus-sdk", "locus/__init__.py", version="3.0")
    (site / "locus").mkdir()
    (site / "locus" / "__init__.py").touch()
    old = install(site, "old-locus")
    (old / "top_level.txt").write_text("locus\n")

    done = locus("plugins", "doctor")

    assert done.status == 1
    assert "locus-sdk 3.0 installs a package 'locus', too" in done.out
    assert "pip uninstall locus-sdk" in done.out
    assert "old-locus 1.0" in done.out


def test_doctor_finds_a_folder_that_shadows_the_kernel(locus: Locus, site: Path) -> None:
    (site / "locus").mkdir()
    (site / "locus" / "__init__.py").touch()

    done = locus("plugins", "doctor")

    assert done.status == 1
    assert "is a package 'locus' as well" in done.out


def test_stranger_in_the_place_of_the_kernel_is_one_line(environment: dict[str, str], site: Path, here: Path) -> None:
    (site / "locus").mkdir()
    (site / "locus" / "__init__.py").write_text("__version__ = 'another'\n")

    done = subprocess.run(
        [sys.executable, "-m", "locus_plugin_cli", "plugins", "doctor"],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No module named 'locus." in done.stderr
    assert "is a package 'locus' as well" in done.stderr or "locus-core" in done.stderr


# --- commands that plugins bring ----------------------------------------------------------------


def test_active_plugin_brings_commands(locus: Locus) -> None:
    done = locus("-p", "toy", "shout", "hello")

    assert (done.status, done.out) == (0, "HELLO\n")
    assert locus("-p", "toy", "whisper").status == 0


def test_help_lists_them(locus: Locus) -> None:
    shown = locus("-p", "toy", "--help").out

    assert "shout" in shown
    assert "Say it softly." in shown
    assert "shout" not in locus("--help").out


def test_configuration_brings_them_too(locus: Locus, here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.locus.plugins]\nenabled = ["toy"]\n')

    assert locus("shout", "x").out == "X\n"
    assert "shout" in locus("--help").out


def test_command_of_an_inactive_plugin_is_unknown(locus: Locus) -> None:
    done = locus("shout", "x")

    assert done.status == 2
    assert "No such command 'shout'" in done.err


def test_a_plugin_in_the_place_of_a_command_is_told_how_to_switch_it_on(locus: Locus) -> None:
    done = locus("toy", "x")

    assert done.status == 2
    assert "No such command 'toy'; a plugin of that name is installed: locus -p toy toy switches it on" in done.err


def test_misspelled_command_of_a_plugin_is_suggested(locus: Locus) -> None:
    assert "Did you mean 'shout'?" in locus("-p", "toy", "shuot", "x").err


def test_command_with_a_taken_name_is_left_out(
    locus: Locus, site: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "thief", "thief.py", points="thief = thief:plugin")
    (site / "thief.py").write_text(
        "import click\nfrom locus.plugin import Plugin, hookimpl\n"
        'plugin = Plugin(name="thief", api=(1, 0), summary="Takes.", hooks=("thief",))\n'
        "@click.command()\ndef run(): ...\n"
        "@hookimpl\ndef locus_register_commands():\n    return [run, 7]\n"
    )
    monkeypatch.delitem(sys.modules, "thief", raising=False)

    done = locus("-p", "thief", "--help")

    assert done.status == 0
    assert "its command 'run' is taken" in done.err
    assert "locus_register_commands returned 7" in done.err
