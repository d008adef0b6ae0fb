"""Every distribution of the checkout, built: what its wheel says to those who find it without the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(
    path.parent for place in ("core", "plugins/*", "contrib/*") for path in ROOT.glob(f"{place}/pyproject.toml")
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Message]:
    """The metadata of each wheel by the name of its distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder], cwd=ROOT, check=True)
    read: dict[str, Message] = {}
    for wheel in folder.glob("*.whl"):
        with ZipFile(wheel) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
            metadata = message_from_bytes(archive.read(name))
        read[str(metadata["Name"])] = metadata
    return read


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_wheel_carries_its_readme(wheels: dict[str, Message], folder: Path) -> None:
    name = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    metadata = wheels[name]

    assert metadata["Description-Content-Type"] == "text/markdown"
    body = metadata.get_payload(decode=True)
    assert isinstance(body, bytes)
    assert body.decode() == (folder / "README.md").read_text(encoding="utf-8")
    assert metadata["Summary"]
