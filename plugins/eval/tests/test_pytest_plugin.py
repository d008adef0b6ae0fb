"""Cases as tests of pytest, which runs in a process of its own: as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(
    here: Path, environment: dict[str, str], *arguments: str, autoload: str = ""
) -> subprocess.CompletedProcess[str]:
    # What else is installed takes seconds to load, and is not what these tests are about.
    environment = {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "" if autoload else "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(here), *arguments]
    return subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_cases_are_tests_where_that_is_asked_for(cases: Path, here: Path, environment: dict[str, str]) -> None:
    done = run(here, environment, "-v", "-p", "locus_plugin_eval.pytest_plugin", "--eval-agent", "shop.py:agent")
    assert "desk.eval.yaml::lamp PASSED" in done.stdout, done
    assert "desk.eval.yaml::chair PASSED" in done.stdout
    one = run(
        here, environment, "-p", "locus_plugin_eval.pytest_plugin", "--eval-agent", "shop.py:worse", "-k", "light"
    )
    assert "1 failed, 1 deselected" in one.stdout
    assert "0 of 1 trials passed (0.0%), expected 100.0%" in one.stdout
    assert 'contains: "12 EUR" not in "I do not know."' in one.stdout
    assert "Traceback" not in one.stdout


def test_a_check_of_a_tool_with_a_typo_in_its_name_is_a_warning(shop: Path, environment: dict[str, str]) -> None:
    (shop.parent / "typo.eval.yaml").write_text("cases: [{id: a, prompt: x, checks: [{not_called: prise}]}]")
    done = run(shop.parent, environment, "-p", "locus_plugin_eval.pytest_plugin", "--eval-agent", "shop.py:agent")
    assert "case 'a' checks calls of 'prise', which is not a tool; did you mean 'price'?" in done.stdout, done
    assert "typo.eval.yaml:1: PytestWarning" in done.stdout


def test_without_being_asked_for_nothing_is_loaded_or_collected(
    cases: Path, here: Path, environment: dict[str, str]
) -> None:
    (here / "test_it.py").write_text(
        "import sys\ndef test(): assert not [name for name in sys.modules if name.startswith('locus_plugin_eval')]\n"
    )
    assert "1 passed" in run(here, environment, autoload="yes").stdout


def test_what_is_wrong_is_said_without_a_traceback(cases: Path, here: Path, environment: dict[str, str]) -> None:
    cases.unlink()
    (here / "a.eval.yaml").write_text("cases: [{id: a, prompt: x}]")
    (here / "b.eval.yaml").write_text("agent: shop.py:none\ncases: [{id: a, prompt: x}]")
    done = run(here, environment, "-p", "locus_plugin_eval.pytest_plugin")
    assert "names no agent; add `agent: FILE:NAME`, or pass --eval-agent" in done.stdout, done
    assert "shop.py has no 'none'" in done.stdout
    assert "2 failed" in done.stdout
    (here / "c.eval.yaml").write_text("cases: [{id: a, promt: x}]")
    done = run(here, environment, "-p", "locus_plugin_eval.pytest_plugin")
    assert "'promt' is not known; did you mean 'prompt'?" in done.stdout, done
    assert "Traceback" not in done.stdout


def test_the_agent_may_be_in_the_configuration_and_in_the_file(
    cases: Path, here: Path, environment: dict[str, str]
) -> None:
    (here / "conftest.py").write_text('pytest_plugins = ["locus_plugin_eval.pytest_plugin"]\n')
    (here / "pytest.ini").write_text("[pytest]\neval_agent = shop.py:worse\n")
    assert "2 failed" in run(here, environment).stdout
    folder = here / "evals"
    folder.mkdir()
    cases.rename(folder / "desk.eval.yaml")
    (here / "shop.py").rename(folder / "shop.py")
    path = folder / "desk.eval.yaml"
    path.write_text(f"agent: shop.py:agent\n{path.read_text()}")
    assert "2 passed" in run(here, environment).stdout
