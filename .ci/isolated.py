"""Prove that each distribution declares what it needs, by testing its wheel nearly alone.

In a shared environment an undeclared dependency is always there. Here every wheel meets only the
kernel, what it asks for itself, and then the test kit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from workspace import CONSTRAINTS, ROOT, Distribution, distributions, uv

# Imports every module of a package and loads every entry point of its distribution.
_PROBE = """
import importlib, importlib.metadata, pkgutil, sys
name, package = sys.argv[1:]
found = importlib.import_module(package)
for module in pkgutil.walk_packages(found.__path__, package + "."):
    if not module.name.endswith(("pytest_plugin", "__main__")) and ".template" not in module.name:
        importlib.import_module(module.name)
for point in importlib.metadata.distribution(name).entry_points:
    if point.group != "pytest11":
        point.load()
"""


def _named(requirement: str) -> str:
    """The normalised name that a requirement starts with."""
    matched = re.match(r"[A-Za-z0-9._-]+", requirement)
    if matched is None:
        raise SystemExit(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", matched.group()).lower()


def closure(start: Distribution, known: dict[str, Distribution], *, tested: bool = False) -> list[Distribution]:
    """A distribution with those of this checkout that it declares to need, itself first.

    Args:
        start: the distribution.
        known: those of this checkout, by name.
        tested: with what its own tests need as well.
    """
    wanted = [start]
    if tested:
        named = (known.get(_named(requirement)) for requirement in start.test_group)
        wanted += [each for each in named if each is not None]
    for each in wanted:
        for requirement in each.requirements:
            needed = known.get(_named(requirement))
            if needed is not None and needed not in wanted:
                wanted.append(needed)
    return wanted


#: What an undeclared dependency breaks, any test shows; the long proofs run in an environment of the test list.
_QUICKLY = ("-m", "not e2e and not privileged and not proof")


class _Bench:
    """The wheels of this checkout and a place for one environment each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known = {each.name: each for each in distributions()}
        self._making = Lock()
        uv("build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder / "wheels")

    def _python(self, each: Distribution) -> str:
        """The interpreter for a distribution: those of ISOLATED_PYTHONS in turn, or the one that runs this."""
        wanted = os.environ.get("ISOLATED_PYTHONS", "").split(",")
        return wanted[sorted(self.known).index(each.name) % len(wanted)] or sys.executable

    def wheel(self, each: Distribution) -> Path:
        """The wheel of a distribution."""
        stem = each.name.replace("-", "_")
        return next((self.folder / "wheels").glob(f"{stem}-*.whl"))

    def _base(self, python: str, name: str) -> Path:
        """What an environment with one distribution of ours holds, compiled once for all that hold it."""
        with self._making:
            home = self.folder / f"{name}-{python.replace(os.sep, '-')}"
            if not home.exists():
                wheels = map(self.wheel, closure(self.known[name], self.known))
                compiled = [*self._install(home / "bin" / "python"), "--compile-bytecode", *wheels]
                uv("venv", "--quiet", "--python", python, home)
                subprocess.run(list(map(str, compiled)), cwd=self.folder, check=True)
            return home / "lib"

    def test(self, each: Distribution) -> tuple[bool, str]:
        """Try one distribution in an environment of its own; returns whether it passed, and the output."""
        started = time.monotonic()
        home = self.folder / each.name
        python = home / "bin" / "python"
        needed = closure(each, self.known)
        kit = [*closure(self.known["locus-testkit"], self.known), *closure(each, self.known, tested=True)]
        # Hard links: to compile what everybody has took as long as to test.
        bases = [self._base(self._python(each), name) for name in ("locus-core", "locus-testkit")]
        steps: list[list[str | Path]] = [
            ["uv", "venv", "--quiet", "--python", self._python(each), home],
            ["cp", "-alf", bases[0], home],
            [*self._install(python), *map(self.wheel, needed)],
            [python, "-W", "error", "-c", _PROBE, each.name, each.package],
            ["cp", "-alf", bases[1], home],
            [*self._install(python), *map(self.wheel, dict.fromkeys([*needed, *kit])), *each.test_group],
            [
                python,
                "-m",
                "pytest",
                "-c",
                ROOT / "pyproject.toml",
                "--rootdir",
                ROOT,
                *_QUICKLY,
                each.folder / "tests",
            ],
        ]
        said = [f"== {each.name}: {', '.join(other.name for other in needed)}, then the test kit; {self._python(each)}"]
        for step in steps:
            # From a folder without sources, so that nothing is found that the wheel does not hold.
            done = subprocess.run(
                list(map(str, step)),
                cwd=self.folder,
                env={**os.environ, "CI": "true"},  # hypothesis then leaves its deadline and its randomness out
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            said.append(done.stdout.strip())
            if done.returncode:
                said.append(f"== {each.name}: FAILED with exit status {done.returncode}: {step[0]} {step[1]} ...")
                return False, "\n".join(filter(None, said))
        said.append(f"== {each.name}: passed in {time.monotonic() - started:.1f} s")
        return True, "\n".join(filter(None, said))

    def _install(self, python: Path) -> list[str | Path]:
        """Without the refresh uv would take a cached wheel of the same version and test yesterday's code."""
        refresh = [option for name in self.known for option in ("--refresh-package", name)]
        return ["uv", "pip", "install", "--quiet", "--python", python, "--constraint", CONSTRAINTS, *refresh]


def main(names: list[str]) -> int:
    """Test the named distributions, or every plugin and contrib package; returns an exit status."""
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder).resolve())
        unknown = sorted(set(names) - set(bench.known))
        if unknown:
            raise SystemExit(f"no distribution is called {unknown}; there are {sorted(bench.known)}")
        chosen = [each for each in bench.known.values() if (each.name in names if names else each.area != "core")]
        # What has the most to test first, so that nothing long is left for the end.
        chosen.sort(key=lambda each: -sum(path.stat().st_size for path in each.folder.glob("tests/**/*.py")))
        passed = True
        with ThreadPoolExecutor(max_workers=4) as pool:
            for good, said in pool.map(bench.test, chosen):
                print(said, flush=True)
                passed = passed and good
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
