"""The names of streams and subjects, and how each stream is made.

A thread's subjects hold a hash of its id, because an id may be any text and a subject may not. The header of each
message has the id in full.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from attrs import frozen

__all__ = ["Names", "key_of", "new_token"]


@lru_cache(1024)
def key_of(thread_id: str) -> str:
    """What a thread is called in subjects: 24 letters and digits."""
    digest = hashlib.blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=15).digest()
    return base64.b32encode(digest).decode().lower()


def new_token() -> str:
    """A name that nothing else has: 32 hex digits."""
    return os.urandom(16).hex()


@frozen
class Names:
    """What everything is called, from the prefix."""

    prefix: str

    @property
    def journal(self) -> str:
        """The stream of journals."""
        return self.prefix.upper()

    @property
    def workers(self) -> str:
        """The stream of leases."""
        return f"{self.prefix.upper()}_W"

    @property
    def blobs(self) -> str:
        """The stream of large payloads, in chunks."""
        return f"{self.prefix.upper()}_B"

    @property
    def queue(self) -> str:
        """The stream of places in queues."""
        return f"{self.prefix.upper()}_Q"

    @property
    def all_entries(self) -> str:
        """Every message of every journal."""
        return f"{self.prefix}.j.>"

    def thread(self, key: str) -> str:
        """Every message of one journal."""
        return f"{self.prefix}.j.{key}.>"

    def entry(self, key: str, kind: str) -> str:
        """The messages of one kind of one journal."""
        return f"{self.prefix}.j.{key}.{kind}"

    def worker(self, worker: str) -> str:
        """The lease of a worker; ``"*"`` for all of them."""
        return f"{self.prefix}.w.{worker}"

    def place(self, key: str) -> str:
        """Where a thread waits; ``"*"`` for all of them."""
        return f"{self.prefix}.q.{key}"

    def nudge(self, key: str) -> str:
        """Said, and not stored, when a thread was sent a signal; ``"*"`` for all of them."""
        return f"{self.prefix}.n.{key}"

    def blob(self, key: str, name: str = "") -> str:
        """The chunks of one payload of a thread, or of all of them."""
        return f"{self.prefix}.b.{key}.{name}.>" if name else f"{self.prefix}.b.{key}.>"

    def chunk(self, key: str, name: str, i: int) -> str:
        """One chunk."""
        return f"{self.prefix}.b.{key}.{name}.{i}"

    def streams(self, replicas: int, max_bytes: int | None) -> Mapping[str, Mapping[str, Any]]:
        """Name -> configuration of each stream.

        Journals and chunks are never dropped for newer ones: a full stream refuses. Leases expire by themselves.
        """
        common: dict[str, Any] = {"storage": "file", "num_replicas": replicas, "allow_direct": True, "max_age": 0}
        kept = common | {"discard": "new", "retention": "limits"}
        return {
            self.journal: kept | {"subjects": [self.all_entries], "max_bytes": max_bytes or -1},
            self.workers: common
            | {"subjects": [self.worker("*")], "max_msgs_per_subject": 1, "allow_msg_ttl": True, "retention": "limits"},
            self.queue: kept | {"subjects": [self.place("*")], "max_msgs_per_subject": 1, "allow_msg_ttl": True},
            self.blobs: kept | {"subjects": [f"{self.prefix}.b.>"], "max_msgs_per_subject": 1},
        }
