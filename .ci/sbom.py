"""Write a bill of materials for each distribution: what its wheel installs into an empty environment.

Writes one CycloneDX file each to the folder given on the command line, or only for the distributions that are named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from isolated import closure
from workspace import CONSTRAINTS, ROOT, Distribution, distributions, uv


def write(each: Distribution, known: dict[str, Distribution], out: Path) -> Path:
    """The bill of one distribution, from an environment that has only it and its requirements.

    Args:
        each: the distribution.
        known: those of this checkout, by name; they are installed from here, never from an index.
        out: the folder for the file.
    """
    file = out / f"{each.name}.cdx.json"
    with tempfile.TemporaryDirectory(prefix="locus-sbom-") as folder:
        place = Path(folder) / "environment"
        uv("venv", "--quiet", "--python", sys.executable, place)
        python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
        wanted = [needed.folder for needed in closure(each, known)]
        uv("pip", "install", "--quiet", "--python", python, "--constraint", CONSTRAINTS, *wanted)
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
        pyproject = each.folder / "pyproject.toml"
        command = [*tool, "--pyproject", str(pyproject), "--output-file", str(file), str(python)]
        done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return file


def main() -> int:
    """Write the bills that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / ".tox" / "sbom", help="the folder for the files")
    parser.add_argument("names", nargs="*", metavar="DISTRIBUTION")
    given = parser.parse_args()
    known = {each.name: each for each in distributions()}
    if unknown := set(given.names) - set(known):
        raise SystemExit(f"no distribution is called {min(unknown)!r}; expected some of {', '.join(sorted(known))}")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or sorted(known):
        print(write(known[name], known, given.out), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
