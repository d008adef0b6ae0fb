"""Messages of a stream in their order: many for one request."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from locus_plugin_nats.headers import Tip, make_tip
from locus_plugin_nats.wire import ApiError, ConnectionLost, decode_header

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from locus_plugin_nats.session import Session

__all__ = ["Found", "read_one", "read_page", "read_stream", "scan"]

#: Subject, sequence, headers, time as the server writes it, and body.
Found = tuple[str, int, Mapping[str, str], str, bytes]

#: Messages, and bytes, for one request.
_BATCH, _BYTES = 512, 8 * 1024 * 1024

#: Headers for one request of a scan.
_SCANNED = 2000

#: Nanoseconds after which the server drops the consumer of a scan that was broken off.
_FORGOTTEN = 30_000_000_000


async def read_stream(
    session: Session, stream: str, subject: str, first: int, count: int = 0, last: int = 0
) -> list[Found]:
    """Messages of a stream, from a sequence on.

    Any replica answers, so what one of them lacks yet is asked of the leader.

    Args:
        session: the store.
        stream: its name.
        subject: those to read; may end in a wildcard.
        first: the sequence to begin with.
        count: how many there are, where that is known.
        last: the sequence of the last one, where that is known.

    Raises:
        NatsUnreachable: the server does not answer.
    """
    found: list[Found] = []
    while not _is_whole(found, count, last):
        page, is_end = await read_page(session, stream, subject, found[-1][1] + 1 if found else first)
        found += page
        if is_end:
            break
    while not _is_whole(found, count, last):
        message = await _from_leader(session, stream, subject, found[-1][1] + 1 if found else first)
        if message is None:
            break
        found.append(message)
    return [each for each in found if not last or each[1] <= last]


def _is_whole(found: list[Found], count: int, last: int) -> bool:
    return bool((last and found and found[-1][1] >= last) or (count and len(found) >= count))


async def read_page(
    session: Session, stream: str, subject: str, first: int, *, batch: int = _BATCH
) -> tuple[list[Found], bool]:
    """The next messages of a stream as one replica has them, and whether it has no more.

    Args:
        session: the store.
        stream: its name.
        subject: those to read; may end in a wildcard.
        first: the sequence to begin with.
        batch: how many at most.

    Raises:
        NatsUnreachable: the server does not answer.
    """
    request = {"seq": first, "next_by_subj": subject, "batch": min(batch, _BATCH), "max_bytes": _BYTES}
    deadline = time.monotonic() + session.settings.patience
    while True:
        await session.wire.up(deadline)
        try:
            answers = await session.wire.ask_many(
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), _is_status
            )
            if (answers[-1].headers or {}).get("Status") != "503":  # that a stream has no leader for a moment
                break
        except ConnectionLost:
            pass
        if time.monotonic() >= deadline:
            raise session.wire.unreachable()
        await asyncio.sleep(0.1)
    end = (answers.pop().headers or {}).get("Nats-Num-Pending", "0")
    return [_read(answer) for answer in answers], end == "0" or not answers


def _is_status(message: Msg) -> bool:
    return bool(message.headers) and "Status" in (message.headers or {})


def _read(message: Msg) -> Found:
    headers = message.headers or {}
    return headers["Nats-Subject"], int(headers["Nats-Sequence"]), headers, headers["Nats-Time-Stamp"], message.data


async def _from_leader(session: Session, stream: str, subject: str, first: int) -> Found | None:
    return await read_one(session, stream, seq=first, next_by_subj=subject)


async def read_one(session: Session, stream: str, **place: Any) -> Found | None:
    """One message as the leader has it, or None.

    Args:
        session: the store.
        stream: its name.
        place: ``last_by_subj``, or ``seq`` and ``next_by_subj``.
    """
    try:
        message = (await session.wire.api(f"STREAM.MSG.GET.{stream}", **place))["message"]
    except ApiError as e:
        if e.is_missing:
            return None
        raise session.problem(e) from None
    headers = decode_header(message.get("hdrs", ""))
    data = base64.b64decode(message.get("data", ""))
    return message["subject"], int(message["seq"]), headers, message["time"], data


async def scan(session: Session, subject: str, first: int | None = None) -> AsyncIterator[list[Tip]]:
    """Messages of journals without their bodies, some thousands at a time: for one pass over very many.

    Args:
        session: the store.
        subject: those to read; may have wildcards.
        first: the sequence to begin with; None = only the newest message of each subject.

    Raises:
        NatsUnreachable: the server does not answer.
        JournalDamaged: a header is not what was written.
    """
    stream = session.names.journal
    start = {"deliver_policy": "last_per_subject"}
    if first is not None:
        start = {"deliver_policy": "by_start_sequence", "opt_start_seq": max(1, first)}  # type: ignore[dict-item]
    try:
        made = await session.wire.api(
            f"CONSUMER.CREATE.{stream}",
            stream_name=stream,
            config=start
            | {
                "ack_policy": "none",
                "headers_only": True,
                "mem_storage": True,
                "num_replicas": 1,
                "filter_subject": subject,
                "inactive_threshold": _FORGOTTEN,
            },
        )
    except ApiError as e:
        raise session.problem(e) from None
    consumer, left = f"{stream}.{made['name']}", int(made["num_pending"])
    try:
        while left:
            messages = await _fetch(session, consumer, left)
            left -= len(messages)
            yield [_tip(message) for message in messages]
    finally:
        await session.wire.api(f"CONSUMER.DELETE.{consumer}")


def _tip(message: Msg) -> Tip:
    words = message.reply.split(".")
    return make_tip(message.subject, int(words[5]), message.headers or {}, int(words[7]) // 1000, b"")


async def _fetch(session: Session, consumer: str, left: int) -> list[Msg]:
    arrived: list[str] = []
    batch = min(left, _SCANNED)

    def is_last(message: Msg) -> bool:
        arrived.append(message.reply)
        return not message.reply.startswith("$JS.ACK.") or len(arrived) == batch

    request = json.dumps({"batch": batch, "expires": 1_500_000_000}).encode()
    try:
        found = await session.wire.ask_many(f"$JS.API.CONSUMER.MSG.NEXT.{consumer}", request, is_last, own_inbox=True)
    except ConnectionLost:
        raise session.wire.unreachable() from None
    messages = [message for message in found if message.reply.startswith("$JS.ACK.")]
    if not messages:
        raise session.wire.unreachable()
    return messages
