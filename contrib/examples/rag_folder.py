"""Questions about a folder of texts: passages are cited, and an answer that no passage supports goes back.

    python contrib/examples/rag_folder.py docs/ "How long is the guarantee?"

It needs the plugins grounding and that of the model. The index is SQLite's FTS5: one file, no server, and no embeddings
to compute. Only files that changed are read again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import frozen

from locus import Agent, TokenLimit, ToolContext, tool

TABLES = """
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, digest TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS passages USING
    fts5(text, path UNINDEXED, line UNINDEXED, tokenize = 'porter unicode61');
"""


@frozen
class Index:
    """The passages of the ``.md`` and ``.txt`` files of a folder, in an SQLite file."""

    folder: Path
    file: Path

    def open(self) -> sqlite3.Connection:
        """Connect; the caller closes. Each call has a connection of its own, because calls run side by side."""
        db = sqlite3.connect(self.file)
        db.executescript(TABLES)
        return db

    def refresh(self) -> int:
        """Read what changed since the last time, forget what is gone, and return how many files were read."""
        root = self.folder.resolve()
        texts: dict[str, str] = {}
        for path in sorted(root.rglob("*")):
            if path.suffix in (".md", ".txt") and path.is_file() and path.resolve().is_relative_to(root):
                texts[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8", errors="replace")
        digests = {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}
        with closing(self.open()) as db, db:
            known = dict(db.execute("SELECT path, digest FROM files"))
            changed = [name for name in texts if known.get(name) != digests[name]]
            for name in {*changed, *(known.keys() - texts.keys())}:
                db.execute("DELETE FROM passages WHERE path = ?", (name,))
                db.execute("DELETE FROM files WHERE path = ?", (name,))
            for name in changed:
                db.execute("INSERT INTO files VALUES (?, ?)", (name, digests[name]))
                db.executemany("INSERT INTO passages VALUES (?, ?, ?)", split(name, texts[name]))
        return len(changed)

    def search(self, question: str, limit: int) -> list[dict[str, str]]:
        """The passages that fit best, by BM25."""
        words = re.findall(r"\w+", question)
        if not words:
            return []
        wanted = " OR ".join(f'"{word}"' for word in words)  # quoted: no word is an operator of FTS5
        rows = "SELECT path, line, text FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        with closing(self.open()) as db:
            return [
                {"source": f"{path}, line {line}", "text": text}
                for path, line, text in db.execute(rows, (wanted, limit))
            ]


def split(path: str, text: str) -> list[tuple[str, str, int]]:
    """The paragraphs of a text, each with the number of its first line."""
    found = re.finditer(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*", text)
    return [(match[0], path, text.count("\n", 0, match.start()) + 1) for match in found]


@tool(effect="pure", reads="untrusted")
def search(question: str, ctx: ToolContext[Index]) -> list[dict[str, str]]:
    """Find the passages of the folder that fit a question best, each with its source.

    Args:
        question: the words that the passage is likely to have.
    """
    return ctx.deps.search(question, limit=6)


def build(model: Any) -> Agent[Index, Any]:
    """Make the agent of ``"provider:name"``, or of a model; an `Index` is passed to each run as ``deps``."""
    return Agent(
        model,
        name="folder",
        tools=[search],
        system_prompt="Answer from the passages that search finds, in short, with the source of each in brackets.",
        grounding={"judge": "rules", "revisions": 2},
        termination=TokenLimit(30_000),
        max_iterations=8,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answer a question from the texts of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question")
    parser.add_argument("--index", type=Path, default=Path("folder-index.db"), help="the SQLite file of the index")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    index = Index(args.folder, args.index)
    print(f"{index.refresh()} files read")
    result = asyncio.run(build(args.model).run(args.question, deps=index))
    print(f"{result.text or result.stop_reason} ({result.reports['grounding'].verdict})")
