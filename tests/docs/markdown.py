"""The fenced blocks of a document, with what the comments before them say about running them.

A comment stands right before its block and is invisible to readers. There are these:

- ``<!-- model: TURN, TURN -->``: what the model answers in this block, as turns of `locus_testkit.ScriptedModel`;
  all of them must be used;
- ``<!-- file: PATH -->``: the block is that file; it is written, and run only when something imports it;
- ``<!-- peer: FILE -->``: the block is a program for another library, see tests/docs/test_peers.py;
- ``<!-- output -->``: the block is what the one before has printed; ``...`` stands for anything;
- ``<!-- e2e -->``: needs a real model; the commands of such a block run with ``-m e2e``;
- ``<!-- run-command -->``, ``<!-- test-command -->``, ``<!-- recorded-run -->``: the two commands of the README, and
  what the first one printed;
- ``<!-- diagram: loop -->``: a picture is drawn here when the site is built, see docs/hooks.py;
- ``<!-- setup`` and lines of Python up to ``-->``: run where it stands, before the next block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import field, frozen

ROOT = Path(__file__).resolve().parent.parent.parent

COMMENTS = ("model", "file", "peer", "output", "e2e", "run-command", "test-command", "recorded-run", "diagram", "setup")
LANGUAGES = ("python", "pyi", "toml", "yaml", "console", "sh", "json", "text", "ini", "dockerfile")
DIAGRAMS = ("loop",)

_OPENING = re.compile(r"( *)```+ *(\S*)\s*$")
_COMMENT = re.compile(r"<!--\s*(?P<name>[a-z0-9-]+)\s*:?(?P<text>.*)-->\s*$", re.DOTALL)


@frozen
class Block:
    """One fenced block.

    Args:
        path: the document.
        line: of its first line of text, counted from 1.
        language: what stands behind the opening fence; ``"setup"`` for a comment with code.
        text: without the fences.
        comments: what the comments before it say, by name.
    """

    path: Path
    line: int
    language: str
    text: str
    comments: dict[str, str] = field(factory=dict)

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def documents() -> list[Path]:
    """The README of the checkout, its guide for contributors, and the README of each distribution."""
    folders = [
        ROOT / "core",
        *sorted((ROOT / "plugins").iterdir()),
        *sorted((ROOT / "contrib").iterdir()),
    ]
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(f / "README.md" for f in folders if (f / "pyproject.toml").is_file()),
    ]


def pages() -> list[Path]:
    """The pages of the documentation that people wrote, in the order of their names."""
    return sorted((ROOT / "docs" / "pages").rglob("*.md"))


def readings() -> list[tuple[Path, ...]]:
    """What is followed in one go: each document alone, and the steps of the tutorial together."""
    tutorial = tuple(page for page in pages() if page.parent.name == "tutorial")
    return [*((path,) for path in documents()), *((page,) for page in pages() if page not in tutorial), tutorial]


def blocks(path: Path) -> list[Block]:
    """The blocks of a document in order, the hidden ones included.

    Raises:
        ValueError: a comment or a language is unknown, a comment stands before no block, or a fence is not closed.
    """
    return list(_Reader(path).read())


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = path.read_text(encoding="utf-8").splitlines()
        self._at = 0
        self._comments: dict[str, str] = {}

    def read(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            opening = _OPENING.match(line)
            if opening:
                yield self._fenced(len(opening[1]), opening[2])
            elif line.startswith("<!--"):
                yield from self._comment()
            else:
                if line.strip() and self._comments:
                    raise self._wrong(f"the comment {sorted(self._comments)} stands before no block")
                self._at += 1
        if self._comments:
            raise self._wrong(f"the comment {sorted(self._comments)} stands before no block")

    def _fenced(self, indent: int, language: str) -> Block:
        first = self._at + 1
        if language not in LANGUAGES:
            raise self._wrong(f"a block in the language {language!r}; there are {', '.join(LANGUAGES)}")
        end = first
        while end < len(self._lines) and not self._lines[end].strip().startswith("```"):
            end += 1
        if end == len(self._lines):
            raise self._wrong("a fence is not closed")
        text = "\n".join(line[indent:] for line in self._lines[first:end]) + "\n"
        comments, self._comments = self._comments, {}
        self._at = end + 1
        return Block(self._path, first + 1, language, text, comments)

    def _comment(self) -> Iterator[Block]:
        first = self._at
        while "-->" not in self._lines[self._at]:
            self._at += 1
            if self._at == len(self._lines):
                self._at = first
                raise self._wrong("a comment is not closed")
        self._at += 1
        text = "\n".join(self._lines[first : self._at])
        found = _COMMENT.match(text)
        if found is None or found["name"] not in COMMENTS:
            self._at = first
            raise self._wrong(f"the comment {text[:60]!r} is unknown; there are {', '.join(COMMENTS)}")
        if found["name"] == "diagram":
            if found["text"].strip() not in DIAGRAMS:
                raise self._wrong(f"the diagram {found['text'].strip()!r} is unknown; there are {', '.join(DIAGRAMS)}")
        elif found["name"] == "setup":
            yield Block(self._path, first + 2, "setup", found["text"].lstrip("\n"))
        else:
            self._comments[found["name"]] = found["text"].strip()

    def _wrong(self, text: str) -> ValueError:
        return ValueError(f"{self._path.relative_to(ROOT)}:{self._at + 1}: {text}")
