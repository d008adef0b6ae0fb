"""A file of the hub, through ``huggingface_hub`` when that is installed; its own cache keeps the file."""

from __future__ import annotations

from pathlib import Path

from locus_plugin_llamacpp.errors import HubUnreachable, WeightsError, WeightsMissing
from locus_plugin_llamacpp.lazy import resolve

__all__ = ["download"]

_CLIENT = "huggingface_hub"


def download(name: str, repository: str, file: str) -> Path:
    """Fetch a file, or find it in the client's cache. Blocking.

    Args:
        name: the model as it was asked for, for messages.
        repository: ``"OWNER/REPO"``.
        file: the file's path in the repository.

    Raises:
        WeightsMissing: the client is not installed, or the repository or file does not exist.
        HubUnreachable: no connection, and the cache does not hold the file.
        WeightsError: the hub refused.
    """
    try:
        fetch = resolve(f"{_CLIENT}:hf_hub_download")
        offline = resolve(f"{_CLIENT}.errors:LocalEntryNotFoundError")
        absent = (
            resolve(f"{_CLIENT}.errors:RepositoryNotFoundError"),
            resolve(f"{_CLIENT}.errors:EntryNotFoundError"),
        )
    except ImportError as error:
        install = "pip install 'locus-plugin-llamacpp[hf]'"
        raise WeightsMissing(name, f"{_CLIENT} is not installed; run: {install}", install) from error
    try:
        return Path(fetch(repo_id=repository, filename=file))
    except offline as error:  # derives from the next one, so it comes first
        raise HubUnreachable(name, type(error.__cause__ or error).__name__) from error
    except absent as error:
        raise WeightsMissing(name, f"the hub has no {file!r} in {repository!r}, or it needs a token") from error
    except (OSError, ValueError) as error:
        raise WeightsError(name, f"the hub refused: {error}") from error
