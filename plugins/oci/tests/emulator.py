"""A strict emulator of the part of Object Storage that the store uses, built from the documentation of its API.

No emulator of the native API comes in a package: moto and its like speak S3, which is signed in another way and says
nothing about what the plugin sends. This one refuses whatever the service would refuse: a request without a good
signature, a condition that does not hold, a name that is too long, a parameter that it does not know. Oracle's own SDK
(2.189.0, ObjectStorageClient) was run against it once, and found what it expects.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from attrs import define, field

from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest

from .verification import Keys, unsigned_because

__all__ = ["BUCKET", "NAMESPACE", "Bucket", "Fault", "served"]

NAMESPACE = "axtenancyns"
BUCKET = "journals"

_MILLISECOND = timedelta(milliseconds=1)


@define
class _Object:
    body: bytes
    etag: str
    changed: datetime


@define(eq=False)
class Fault:
    """What goes wrong with some requests.

    Args:
        times: with how many of them; None = all.
        method: of those requests.
        name: what the names of their objects contain.
        status: what is answered; 0 = the connection is cut.
        code: the service's word for it.
        done: whether the request has its effect all the same.
        headers: of the answer.
        action: called before, such as to let somebody else be faster.
    """

    times: int | None = 1
    method: str = "PUT"
    name: str = "threads/"
    status: int = 503
    code: str = "ServiceUnavailable"
    done: bool = False
    headers: dict[str, str] = field(factory=dict)
    action: Callable[[], object] | None = None


class Bucket:
    """One bucket; the answers to `LocalServer`.

    Args:
        keys: who may sign.
        page: the most objects in one listing.
    """

    def __init__(self, keys: Keys, page: int = 3) -> None:
        self.keys, self.page = keys, page
        self.objects: dict[str, _Object] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.refused: list[str] = []
        self._ahead = timedelta(0)
        self._last = datetime.fromtimestamp(0, UTC)
        self._lock = threading.Lock()
        self._left: int | None = None
        self._stored = False

    def advance(self, seconds: float) -> None:
        """Let time pass, for the service."""
        self._ahead += timedelta(seconds=seconds)

    def count_requests(self, method: str, part: str = "") -> int:
        """How many requests there were."""
        return sum(1 for m, name in self.requests if m == method and part in name)

    def dies_at(self, change: int, *, stored: bool) -> None:
        """Let whoever asks die with a request that changes something: that one, and none after it, is answered.

        Args:
            change: the number of that request, from 1.
            stored: whether it has its effect.
        """
        self._left, self._stored = change, stored

    def revive(self) -> bool:
        """Answer again; whether anybody had died."""
        died, self._left = self._left == 0, None
        return died

    def _dies(self, request: ReceivedRequest) -> bool:
        if self._left is None:
            return False
        if self._left and request.method in ("PUT", "DELETE"):
            self._left -= 1
            if not self._left and self._stored:
                self._answer(request)
        return not self._left

    def _now(self) -> datetime:
        # Later each time: what is written later was changed later.
        self._last = max(self._last + _MILLISECOND, datetime.now(UTC) + self._ahead)
        return self._last

    # -- requests -----------------------------------------------------------------------------------

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Answer one request."""
        with self._lock:
            if self._dies(request):
                return Answer(status=0, ending="cut")
            fault = self._fault(request)
        if fault is not None and fault.action is not None:
            fault.action()
        with self._lock:
            answer = self._answer(request) if fault is None or fault.done or fault.action else None
            if fault is None or (fault.action and not fault.done):
                assert answer is not None
                return answer
            if not fault.status:
                return Answer(status=0, ending="cut")
            return self._refusal(fault.status, fault.code, "a fault of the test", **fault.headers)

    def _fault(self, request: ReceivedRequest) -> Fault | None:
        name = unquote(request.path.partition("/o/")[2])
        for fault in self.faults:
            if fault.method == request.method and fault.name in name:
                if fault.times is not None:
                    fault.times -= 1
                    if not fault.times:
                        self.faults.remove(fault)
                return fault
        return None

    def _answer(self, request: ReceivedRequest) -> Answer:
        why = unsigned_because(self.keys, request.method, request.path, request.headers, request.body)
        if why:
            self.refused.append(why)
            return self._refusal(401, "NotAuthenticated", f"The required information to complete authentication: {why}")
        parts = urlsplit(request.path)
        if parts.path in ("/n", "/n/") and request.method == "GET":
            return self._json(NAMESPACE)
        place, _, name = parts.path.removeprefix("/n/").partition("/o")
        if place != f"{NAMESPACE}/b/{BUCKET}":
            return self._refusal(404, "BucketNotFound", f"The bucket {place!r} does not exist in {NAMESPACE}")
        if not name and request.method == "GET":
            return self._list(parse_qs(parts.query, keep_blank_values=True, strict_parsing=True))
        name = unquote(name.removeprefix("/"))
        self.requests.append((request.method, name))
        if not name or len(name.encode()) > 1024 or not name.isprintable():
            return self._refusal(400, "InvalidObjectName", f"The object name {name!r} is not valid")
        method = {"GET": self._get, "HEAD": self._get, "PUT": self._put, "DELETE": self._delete}.get(request.method)
        if method is None or parts.query:
            return self._refusal(405, "MethodNotAllowed", "no")
        return method(name, request)

    def _get(self, name: str, request: ReceivedRequest) -> Answer:
        found = self.objects.get(name)
        if found is None:
            return self._missing(name, request)
        headers = {"etag": found.etag, "last-modified": email.utils.format_datetime(found.changed, usegmt=True)}
        answer = Answer(media_type="application/octet-stream", headers=self._common() | headers, body=found.body)
        if request.method == "GET":
            return answer
        # What HTTP says a HEAD has: the length of what would have come, and nothing of it.
        return Answer(media_type=None, headers=answer.headers, body=b"")

    def _put(self, name: str, request: ReceivedRequest) -> Answer:
        found, given = self.objects.get(name), request.headers
        if "if-none-match" in given:
            if given["if-none-match"] != "*":
                return self._refusal(400, "InvalidIfNoneMatch", "The only valid value is '*'")
            if found is not None:
                return self._refusal(412, "IfNoneMatchFailed", "The If-None-Match header is '*' and the object exists")
        if "if-match" in given and (found is None or found.etag != given["if-match"]):
            return self._refusal(412, "IfMatchFailed", "The If-Match header does not match the ETag of the object")
        digest = base64.b64encode(hashlib.md5(request.body, usedforsecurity=False).digest()).decode()
        if given.get("content-md5", digest) != digest:
            return self._refusal(400, "UnmatchedContentMD5", f"The computed MD5 of the request body ({digest}) ...")
        made = self.objects[name] = _Object(request.body, str(uuid4()), self._now())
        return Answer(media_type=None, headers=self._common() | {"etag": made.etag})

    def _delete(self, name: str, request: ReceivedRequest) -> Answer:
        found = self.objects.get(name)
        if found is None:
            return self._missing(name, request)
        if "if-match" in request.headers and found.etag != request.headers["if-match"]:
            return self._refusal(412, "IfMatchFailed", "The If-Match header does not match the ETag of the object")
        del self.objects[name]
        return Answer(status=204, media_type=None, headers=self._common())

    def _list(self, query: dict[str, list[str]]) -> Answer:
        self.requests.append(("LIST", query.get("prefix", [""])[0]))
        unknown = set(query) - {"prefix", "start", "end", "limit", "fields", "delimiter", "startAfter"}
        limit = int(query.get("limit", ["1000"])[0])
        if unknown or not 1 <= limit <= 1000:
            return self._refusal(400, "InvalidParameter", f"{unknown or limit}")
        fields = query.get("fields", ["name"])[0].split(",")
        prefix, start, end = (query.get(each, [""])[0] for each in ("prefix", "start", "end"))
        names = sorted(n for n in self.objects if n.startswith(prefix) and n >= start and (not end or n < end))
        shown, rest = names[: min(limit, self.page)], names[min(limit, self.page) :]
        rows: list[dict[str, Any]] = []
        for name in shown:
            found = self.objects[name]
            told = {
                "name": name,
                "etag": found.etag,
                "size": len(found.body),
                "timeModified": found.changed.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
            rows.append({each: told[each] for each in fields})
        return self._json({"objects": rows, "prefixes": [], **({"nextStartWith": rest[0]} if rest else {})})

    # -- answers ------------------------------------------------------------------------------------

    def _common(self) -> dict[str, str]:
        return {
            "date": email.utils.format_datetime(datetime.now(UTC) + self._ahead, usegmt=True),
            "opc-request-id": f"iad-1:{uuid4().hex}",
        }

    def _json(self, data: Any) -> Answer:
        return Answer.of(data, headers=self._common())

    def _missing(self, name: str, request: ReceivedRequest) -> Answer:
        answer = self._refusal(404, "ObjectNotFound", f"The object '{name}' was not found in the bucket '{BUCKET}'")
        return answer if request.method != "HEAD" else answer.with_fields(body=b"", media_type=None)

    def _refusal(self, status: int, code: str, message: str, **headers: str) -> Answer:
        text = json.dumps({"code": code, "message": message})
        return Answer(status=status, headers=self._common() | headers, body=text)


@contextmanager
def served(bucket: Bucket) -> Iterator[LocalServer]:
    """A server of the bucket."""
    with LocalServer(bucket) as server:
        yield server
