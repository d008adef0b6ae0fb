"""Names of objects, relative to the prefix of a store. Ids of threads are any text; names of objects are plain ASCII.

::

    threads/<thread>                the head: who holds the thread, what it has, its newest entries
    logs/<thread>/<life>/<object>   entries that no longer fit into the head, immutable
    logs/<thread>/<life>/pins/...   which forks need them
    due/<moment>/<token>/<thread>   when a thread wants to go on; the head says whether that still holds
    pulses/<store>                  changed again and again by a store that lives
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import uuid4

__all__ = [
    "DUE",
    "LOGS",
    "PULSES",
    "THREADS",
    "due_name",
    "due_until",
    "from_micros",
    "head_name",
    "heartbeat_name",
    "micros",
    "new_log",
    "owner_of",
    "pin_name",
    "thread_key",
]

THREADS, LOGS, DUE, PULSES = "threads/", "logs/", "due/", "pulses/"

#: Characters of a name; object names have room for 1,024 bytes in all.
_LONGEST = 300

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def thread_key(thread_id: str) -> str:
    """A thread's part of a name: readable where it can be, and different for different threads."""
    # A dot alone is a place in an address, which clients resolve.
    key = quote(thread_id, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(key) <= _LONGEST:
        return key
    # No quoted text has a plus in it.
    return f"+{hashlib.sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def head_name(key: str) -> str:
    """Where the head of a thread is."""
    return f"{THREADS}{key}"


def new_log(key: str) -> str:
    """A folder for the entries of a thread, from its beginning to its end; a later thread of this name has another."""
    return f"{LOGS}{key}/{uuid4().hex}/"


def owner_of(log: str) -> str:
    """The head of the thread that a log began with."""
    return head_name(log.removeprefix(LOGS).partition("/")[0])


def pin_name(log: str, fork: str) -> str:
    """The object that says that a fork, named by its own log, needs another one's."""
    return f"{log}pins/{fork.removeprefix(LOGS).rstrip('/')}"


def heartbeat_name(store: str) -> str:
    """The object that a store keeps changing."""
    return f"{PULSES}{store}"


def micros(at: datetime) -> int:
    """A moment as microseconds since the year 1, exactly: never negative."""
    return (at - _BEGINNING) // _MICROSECOND


def from_micros(at: int) -> datetime:
    """The inverse, in UTC."""
    return _BEGINNING + at * _MICROSECOND


def due_name(at: int, token: str, key: str) -> str:
    """The name of the object for a due time; names sort by time."""
    return f"{DUE}{at:020d}/{token}/{key}"


def due_until(at: int) -> str:
    """What sorts behind the names of all moments up to this one."""
    return f"{DUE}{at + 1:020d}"
