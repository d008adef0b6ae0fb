"""The distributions of this checkout, and the tools that run over all of them.

Nothing here lists a plugin: a folder in plugins/ or contrib/ with a pyproject.toml takes part, so
adding a plugin edits no shared file. core/ is the kernel. tox puts `uv` on PATH and calls this.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"


@dataclass(frozen=True)
class Distribution:
    """One folder that builds into one wheel."""

    folder: Path

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The parsed pyproject.toml of this distribution."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The name it is installed by, as in `locus-plugin-cli`."""
        return str(self.pyproject["project"]["name"])

    @property
    def package(self) -> str:
        """The name it is imported by, as in `locus_plugin_cli`."""
        module = self.pyproject.get("tool", {}).get("uv", {}).get("build-backend", {}).get("module-name")
        return str(module or self.name.replace("-", "_"))

    @property
    def extras(self) -> frozenset[str]:
        """The names of its optional dependency sets."""
        return frozenset(self.pyproject["project"].get("optional-dependencies", {}))

    @property
    def requirements(self) -> tuple[str, ...]:
        """What it declares to depend on, as written."""
        return tuple(self.pyproject["project"].get("dependencies", ()))

    @property
    def test_group(self) -> tuple[str, ...]:
        """What its own tests need beside pytest and the test kit, as written."""
        return tuple(self.pyproject.get("dependency-groups", {}).get("test", ()))

    @property
    def needs_plugin(self) -> bool:
        """Whether it declares to depend on a plugin."""
        return any(line.startswith("locus-plugin-") for line in self.requirements)

    @property
    def area(self) -> str:
        """The folder at the top of the checkout that holds it: core, plugins or contrib."""
        return self.folder.relative_to(ROOT).parts[0]


def distributions() -> tuple[Distribution, ...]:
    """Every distribution of the checkout, the kernel first."""
    folders = [
        ROOT / "core",
        *sorted((ROOT / "plugins").iterdir()),
        *sorted((ROOT / "contrib").iterdir()),
    ]
    return tuple(Distribution(folder) for folder in folders if (folder / "pyproject.toml").is_file())


def uv(*arguments: str | Path, environment: dict[str, str] | None = None) -> None:
    """Run uv at the root of the checkout; its failure ends this program with its exit status."""
    command = ["uv", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def install(groups: list[str], extras: list[str], *, workspace: bool) -> None:
    """Install dependency groups and, editable, every distribution into the running environment.

    Each extra goes to the distributions that declare it.
    """
    found = distributions()
    unknown = set(extras).difference(*(each.extras for each in found))
    if unknown:
        raise SystemExit(f"no distribution declares the extra {sorted(unknown)}")
    command: list[str | Path] = ["pip", "install", "--quiet", "--python", sys.executable, "--constraint", CONSTRAINTS]
    for group in groups:
        command += ["--group", group]
    if workspace:
        for each in found:
            wanted = ",".join(sorted(each.extras.intersection(extras)))
            command += ["--editable", f"{each.folder}[{wanted}]" if wanted else each.folder, *each.test_group]
    uv(*command)


def check_types() -> int:
    """Run mypy over the sources and tests of every distribution, over tests/ and docs/.

    Tests are modules named by their path, so that two folders may name a test file alike.
    """
    sources = [each.folder / "src" for each in distributions()]
    tests = [each.folder / "tests" for each in distributions()]
    places = [*sources, *tests, ROOT / "tests", ROOT / "contrib" / "examples", ROOT / "docs", ROOT / ".ci"]
    bases = os.pathsep.join(map(str, [*sources, ROOT / ".ci", ROOT]))
    targets = [place for place in places if any(place.glob("**/*.py"))]
    command = [sys.executable, "-m", "mypy", *map(str, targets)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MYPYPATH": bases}, check=False).returncode


def contracts() -> str:
    """The import contracts between distributions, as TOML to follow those of the root pyproject.toml."""
    found = distributions()
    core, plugins, contrib = (
        [each.package for each in found if each.area == area] for area in ("core", "plugins", "contrib")
    )
    shipped = [package for package in (*plugins, *contrib) if package != "locus_testkit"]
    # A distribution of contrib that declares a plugin is built on top of plugins; the others are libraries below them.
    above = [each.package for each in found if each.package in contrib and each.needs_plugin]
    libraries = [package for package in contrib if package not in above]
    lines = []
    for title, sources, forbidden in (
        ("The kernel imports no plugin and nothing of contrib", core, [*plugins, *contrib]),
        ("The libraries of contrib import no plugin", libraries, plugins),
        ("Plugins and libraries do not import what is built on plugins", [*plugins, *libraries], above),
        ("Only tests import the test kit", shipped, ["locus_testkit"]),
    ):
        if not forbidden:
            continue
        lines += ["[[tool.importlinter.contracts]]", f'name = "{title}"', 'type = "forbidden"']
        lines += [f"source_modules = {sources}", f"forbidden_modules = {forbidden}"]
    lines += ["[[tool.importlinter.contracts]]", 'name = "Plugins never import each other"', 'type = "independence"']
    lines += [f"modules = {plugins}"]
    return "\n".join(lines)


def check_imports() -> int:
    """Run import-linter with the kernel's contracts and those between distributions."""
    found = distributions()
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings = text[text.index("[tool.importlinter]") :]
    roots = f"root_packages = {[each.package for each in found]}"
    settings = settings.replace('root_packages = ["locus"]', roots, 1) + "\n" + contracts() + "\n"
    path = os.pathsep.join(str(each.folder / "src") for each in found)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "importlinter.toml"
        config.write_text(settings, encoding="utf-8")
        command = ["lint-imports", "--config", str(config), "--no-cache"]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def lock() -> None:
    """Write the constraints file anew: every third-party version, for every Python, without addresses."""
    command: list[str | Path] = ["pip", "compile", "--quiet", "--universal", "--upgrade", "--python-version", "3.11"]
    command += ["--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--all-extras"]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    for group in groups:
        command += ["--group", group]
    for each in distributions():
        command += [each.folder / "pyproject.toml", "--no-emit-package", each.name]
    ours = tuple(each.name for each in distributions())
    wanted = [line for each in distributions() for line in each.test_group if not line.startswith(ours)]
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder) / "tests.in"
        tests.write_text("\n".join(wanted), encoding="utf-8")
        uv(*command, tests, "--output-file", CONSTRAINTS)


def main() -> int:
    """Read the command line and run one of the tools."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="install the workspace, editable, into this environment")
    installing.add_argument("--group", action="append", default=[], help="a dependency group of the root")
    installing.add_argument("--extra", action="append", default=[], help="an extra of any distribution")
    installing.add_argument("--tools-only", action="store_true", help="the groups alone, no distribution")
    commands.add_parser("types", help="mypy over everything")
    commands.add_parser("imports", help="import-linter over everything")
    commands.add_parser("lock", help="write the constraints file anew")
    arguments = parser.parse_args()
    match arguments.command:
        case "install":
            install(arguments.group, arguments.extra, workspace=not arguments.tools_only)
        case "types":
            return check_types()
        case "imports":
            return check_imports()
        case "lock":
            lock()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
