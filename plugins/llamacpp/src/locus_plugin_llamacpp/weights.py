"""From the text after ``llamacpp:`` to a GGUF file: a packaged model, a path, or a file of the hub.

Weights in packages are data. They are found through their distribution's list of files, so that not a
line of those packages runs, and not even their import machinery is asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from attrs import frozen

from locus.core.errors import UnknownName
from locus_plugin_llamacpp.catalogue import CATALOGUE, PackagedModel, Part
from locus_plugin_llamacpp.errors import WeightsError, WeightsMissing
from locus_plugin_llamacpp.hub import download
from locus_plugin_llamacpp.store import Progress, join_parts, silent

__all__ = ["Source", "cache_folder", "check", "find", "is_installed", "parse"]

_MAGIC = b"GGUF"


@frozen
class Source:
    """Where the weights come from.

    Args:
        name: the model as it was asked for, after the scheme.
        packaged: set for a model of the catalogue.
        path: set for any file.
        hub: set for a file of the hub: (``"OWNER/REPO"``, file).
    """

    name: str
    packaged: PackagedModel | None = None
    path: Path | None = None
    hub: tuple[str, str] | None = None


def parse(name: str) -> Source:
    """Read the text after the scheme; touches nothing.

    Raises:
        UnknownName: it is neither a packaged model, nor a path, nor a file of the hub.
    """
    if name in CATALOGUE:
        return Source(name, packaged=CATALOGUE[name])
    if name.startswith("hf:"):
        repository, _, file = name.removeprefix("hf:").partition(":")
        if repository.count("/") == 1 and all(repository.split("/")) and file:
            return Source(name, hub=(repository, file))
    elif name.endswith(".gguf") or "/" in name or os.sep in name:
        return Source(name, path=Path(name).expanduser().absolute())
    raise UnknownName(
        "model of llamacpp", name, CATALOGUE, "a path to a GGUF file and hf:OWNER/REPO:FILE are valid as well"
    )


def find(source: Source, *, cache_dir: str | None = None, progress: Progress = silent) -> Path:
    """The file to run, complete and, for packaged models, verified. Blocking: call it in a worker thread.

    Args:
        source: from `parse`.
        cache_dir: the folder for joined files; None = `cache_folder`.
        progress: called with (bytes done, bytes in total); may raise to give up.

    Raises:
        WeightsMissing: something is not installed, or the file was not found.
        WeightsError: see its subclasses.
    """
    if source.packaged is not None:
        model = source.packaged
        return join_parts(model, lambda: _parts(model), _models(cache_dir), progress)
    if source.hub is not None:
        return _check_file(source.name, download(source.name, *source.hub))
    assert source.path is not None
    return _check_file(source.name, source.path)


def check(source: Source, *, cache_dir: str | None = None) -> None:
    """Find out whether `find` has what it needs; nothing is joined, verified or fetched.

    Raises:
        WeightsMissing: something is not installed, or the file was not found.
        WeightsError: the file cannot be read, or is not a GGUF file.
    """
    if source.packaged is not None:
        if not (_models(cache_dir) / source.packaged.file_name).is_file():
            _parts(source.packaged)
    elif source.path is not None:
        _check_file(source.name, source.path)


def is_installed(model: PackagedModel) -> bool:
    """Whether every part of a packaged model is installed in the pinned version."""
    return all(_part(part) is not None for part in model.parts)


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder for what can be made again: ``LOCUS_CACHE``, else where the platform keeps such files."""
    if chosen := environ.get("LOCUS_CACHE"):
        return Path(chosen).expanduser()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "locus" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "locus"
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "locus"


def _models(cache_dir: str | None) -> Path:
    return (Path(cache_dir).expanduser() if cache_dir else cache_folder()) / "models"


def _part(part: Part) -> Path | None:
    try:
        distribution = metadata.distribution(part.distribution)
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != part.version:
        return None
    wanted = tuple(part.file.split("/"))
    for file in distribution.files or ():
        if file.parts[-len(wanted) :] == wanted:
            found = Path(str(distribution.locate_file(file)))
            return found if found.is_file() else None
    return None


def _parts(model: PackagedModel) -> list[Path]:
    found = [(part, _part(part)) for part in model.parts]
    absent = [f"{part.distribution}=={part.version}" for part, path in found if path is None]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise WeightsMissing(
            model.name, f"{absent[0]}{more} of {len(found)} packages with its weights not installed", model.install
        )
    return [path for _, path in found if path is not None]


def _check_file(name: str, path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError as error:
        raise WeightsMissing(name, f"file not found: {path}") from error
    except OSError as error:
        raise WeightsError(name, f"cannot read {path}: {error.strerror}") from error
    if magic != _MAGIC:
        raise WeightsError(name, f"{path} is not a GGUF file: it starts with {magic!r}, not {_MAGIC!r}")
    return path
