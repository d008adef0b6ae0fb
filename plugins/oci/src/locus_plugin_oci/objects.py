"""Object Storage over HTTP: objects that are put on a condition, read, listed and deleted.

Source: the Object Storage Service API, and "Special Instructions for Object Storage PUT" for its signatures. The
service is strongly consistent, and an ETag names one version of one object: ``if-match`` is compare-and-swap.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import hashlib
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from attrs import field, frozen

from locus_plugin_oci.credentials import Credentials
from locus_plugin_oci.errors import (
    BucketBusy,
    BucketDamaged,
    BucketDenied,
    BucketFailed,
    BucketMissing,
    BucketProblem,
    BucketRefused,
    BucketUnreachable,
    CredentialsUnusable,
)
from locus_plugin_oci.regions import domain_of, is_region
from locus_plugin_oci.signing import sign
from locus_wire.pools import http_client

__all__ = ["ANY", "ObjectInfo", "Objects", "OutcomeUnknown", "Place", "StoredObject"]

#: As a condition: whatever is there.
ANY = "*"

#: Seconds before the first repetition; each further one waits twice as long, up to the second number.
_FIRST, _LONGEST = 0.2, 5.0

#: Bytes a second that an upload gets beyond the time of a request.
_SLOWEST = 1_000_000

_CONFLICTS = frozenset({"ConcurrentObjectUpdate", "IfMatchFailed", "IfNoneMatchFailed", "ObjectAlreadyExists"})


class OutcomeUnknown(Exception):
    """It is unknown whether a change was made: one of the requests for it got no answer.

    Args:
        problem: what to raise where that cannot be found out.
    """

    def __init__(self, problem: BucketProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@frozen
class StoredObject:
    """An object as it was read; without a body where only its headers were asked for.

    Args:
        body: its bytes.
        etag: of this version.
        changed: when it was written, by the service's clock.
        now: the service's clock.
    """

    body: bytes = field(repr=False)
    etag: str
    changed: datetime
    now: datetime


@frozen
class ObjectInfo:
    """An object in a listing."""

    name: str
    etag: str
    changed: datetime
    size: int = 0


@frozen(kw_only=True)
class Place:
    """Where a store keeps its objects, and how it asks for them.

    Args:
        bucket: its name.
        namespace: of the bucket; None = asked for.
        prefix: of all names, ``""`` or ending with a slash.
        endpoint: ``"https://objectstorage.REGION.oraclecloud.com"``; None = the region's.
        timeout: seconds for one request.
        connect_timeout: seconds to make a connection.
        retries: how often what failed by the way is sent again.
        connections: the most at a time.
    """

    bucket: str
    namespace: str | None = None
    prefix: str = ""
    endpoint: str | None = None
    timeout: float = 20.0
    connect_timeout: float = 10.0
    retries: int = 4
    connections: int = 64


class Objects:
    """The objects of a bucket under a prefix. Used by one event loop at a time.

    Args:
        place: where.
        credentials: who signs.
        pause: gives the seconds before the n-th repetition, from 0.
    """

    def __init__(self, place: Place, credentials: Credentials, *, pause: Callable[[int], float] | None = None) -> None:
        self.place = place
        self._credentials = credentials
        self._pause = pause or _pause
        self._http: httpx2.AsyncClient | None = None
        self._base = ""
        self._namespace = place.namespace
        self._asking = asyncio.Lock()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keeps connections open; everything else works within it only."""
        place = self.place
        async with http_client(
            secure=place.endpoint is None or place.endpoint.startswith("https://"),
            connections=place.connections,
            connect_timeout=place.connect_timeout,
            silence=place.timeout,
        ) as http:
            self._http = http
            try:
                yield
            finally:
                self._http = None

    # -- objects ------------------------------------------------------------------------------------

    async def get(self, name: str, *, head: bool = False) -> StoredObject | None:
        """An object, or None if it does not exist.

        Args:
            name: of the object, without the prefix.
            head: ask for its headers only.

        Raises:
            BucketProblem: the service failed.
        """
        response, _ = await self._ask("HEAD" if head else "GET", await self._url(name))
        if response.status_code == 404 and (head or _read_error(response)[0] in ("ObjectNotFound", "")):
            return None
        self._check_accepted(response, f"read {name!r}")
        now = _moment(response.headers.get("date"))
        etag = response.headers.get("etag", "")
        if not etag:
            raise BucketDamaged(
                self.place.bucket, f"the object {name!r} came without an ETag; is storage_endpoint right?"
            )
        return StoredObject(response.content, etag, _moment(response.headers.get("last-modified"), now), now)

    async def put(self, name: str, body: bytes, *, match: str | None = ANY) -> str | None:
        """Write an object.

        Args:
            name: of the object, without the prefix.
            body: its bytes.
            match: the ETag of the version that it takes the place of; None = it must not exist; `ANY` = any version.

        Returns:
            The ETag of the new version, or None where the condition did not hold and nothing was written.

        Raises:
            Lost: it is not known whether it was written.
            BucketProblem: nothing was written.
        """
        headers = {
            "content-type": "application/octet-stream",
            "content-md5": base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode(),
        }
        if match != ANY:
            headers |= {"if-none-match": "*"} if match is None else {"if-match": match}
        response, lost = await self._ask("PUT", await self._url(name), headers, body)
        if _conflict(response) or (
            response.status_code == 404 and match not in (None, ANY) and not _no_bucket(response)
        ):
            if lost is not None:
                raise OutcomeUnknown(lost)
            return None
        self._check_accepted(response, f"write {name!r}")
        return response.headers.get("etag", "")

    async def delete(self, name: str, *, match: str = ANY) -> bool:
        """Delete an object; False if the condition did not hold, or it does not exist.

        Args:
            name: of the object, without the prefix.
            match: the ETag of the version, or `ANY`.

        Raises:
            Lost: it is not known whether it was deleted.
            BucketProblem: nothing was deleted.
        """
        headers = {} if match == ANY else {"if-match": match}
        response, lost = await self._ask("DELETE", await self._url(name), headers)
        if _conflict(response) or (response.status_code == 404 and not _no_bucket(response)):
            if lost is not None:
                raise OutcomeUnknown(lost)
            return False
        self._check_accepted(response, f"delete {name!r}")
        return True

    async def list(self, prefix: str, *, end: str | None = None, limit: int = 1000) -> AsyncGenerator[ObjectInfo, None]:
        """The objects whose names begin with something, in the order of their names.

        Args:
            prefix: what they begin with.
            end: names from this one on are left out.
            limit: how many to ask for at a time.

        Raises:
            BucketProblem: the service failed.
        """
        own, start = self.place.prefix, ""
        while True:
            query = {"prefix": own + prefix, "limit": str(limit), "fields": "name,etag,size,timeModified"}
            if start:
                query["start"] = start
            if end is not None:
                query["end"] = own + end
            response, _ = await self._ask("GET", f"{await self._bucket()}/o?{urlencode(query, quote_via=quote)}")
            self._check_accepted(response, "list objects")
            try:
                data = response.json()
                rows = [
                    ObjectInfo(
                        row["name"].removeprefix(own),
                        row.get("etag", ""),
                        _instant(row.get("timeModified")),
                        row.get("size") or 0,
                    )
                    for row in data["objects"]
                ]
                following = data.get("nextStartWith")
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise BucketDamaged(
                    self.place.bucket, f"the answer is not a listing ({e!r:.80}); is storage_endpoint right?"
                ) from e
            for row in rows:
                yield row
            if not following or following == start:
                return
            start = following

    # -- requests -----------------------------------------------------------------------------------

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[httpx2.Response, BucketProblem | None]:
        """A response that is not a transient failure; and the failure of an earlier try that may have had its effect.

        Raises:
            Lost: all tries failed, and one of them may have had its effect.
            BucketProblem: all tries failed.
        """
        assert self._http is not None, "the session is not open"
        lost: BucketProblem | None = None
        attempt = 0
        while True:
            try:
                proof = sign(self._credentials.identity(), method, url)
                # What the client calls a timeout is a silence; an answer that drips has none.
                async with asyncio.timeout(self.place.timeout + len(body or b"") / _SLOWEST):
                    response = await self._http.request(method, url, headers={**(headers or {}), **proof}, content=body)
            except (httpx2.HTTPError, TimeoutError) as e:
                problem: BucketProblem = self._unreachable(e)
                before = isinstance(e, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol)
                unknown, wait = method in ("PUT", "DELETE") and not before, None
            else:
                if response.status_code != 429 and response.status_code < 500:
                    return response, lost
                problem = self._problem(response, f"{method} an object")
                # What is refused before anything is done says 429; any other failure may come after the deed.
                unknown = method in ("PUT", "DELETE") and response.status_code != 429
                wait = _seconds(response.headers.get("retry-after"))
            lost = problem if unknown else lost
            if attempt >= self.place.retries:
                if lost is not None:
                    raise OutcomeUnknown(lost)
                raise problem
            await asyncio.sleep(min(_LONGEST, max(self._pause(attempt), wait or 0.0)))
            attempt += 1

    async def _url(self, name: str) -> str:
        return f"{await self._bucket()}/o/{quote(self.place.prefix + name, safe='/')}"

    async def _bucket(self) -> str:
        if not self._base:
            async with self._asking:
                if not self._base:
                    self._base = await self._find()
        return self._base

    async def _find(self) -> str:
        endpoint = self.place.endpoint
        if endpoint is None:
            region = self._credentials.region
            if region is None or not is_region(region):
                raise CredentialsUnusable(
                    f"the region is {region!r}; write region = 'us-ashburn-1' in [plugins.oci], or into the profile"
                )
            endpoint = f"https://objectstorage.{region}.{domain_of(region)}"
        endpoint = endpoint.rstrip("/")
        if self._namespace is None:
            response, _ = await self._ask("GET", f"{endpoint}/n")
            self._check_accepted(response, "ask for the namespace")
            try:
                found = response.json()
            except ValueError:
                found = None
            if not isinstance(found, str) or not found:
                raise BucketDamaged(self.place.bucket, "the answer is not a namespace; is storage_endpoint right?")
            self._namespace = found
        return f"{endpoint}/n/{quote(self._namespace, safe='')}/b/{quote(self.place.bucket, safe='')}"

    def _check_accepted(self, response: httpx2.Response, doing: str) -> None:
        if not 200 <= response.status_code < 300:
            raise self._problem(response, doing)

    def _problem(self, response: httpx2.Response, doing: str) -> BucketProblem:
        status, (code, message) = response.status_code, _read_error(response)
        number = response.headers.get("opc-request-id")
        kind, advice = _KINDS.get(status) or ((BucketFailed, "try again later") if status >= 500 else _REFUSED)
        if 300 <= status < 400:
            advice = "it redirects to another address, which is not followed; check storage_endpoint and region"
        quoted = f': "{" ".join(message.split())[:300]}"' if message else ""
        return kind(
            self.place.bucket,
            f"cannot {doing}: the service answered {status}{f' ({code})' if code else ''}"
            f"{f', request {number}' if number else ''}; {advice}{quoted}",
            status=status,
            code=code or None,
            request_id=number,
        )

    def _unexpected_answer(self, what: str) -> BucketProblem:
        return BucketDamaged(self.place.bucket, f"{what}; compare storage_endpoint with its documentation")

    def _unreachable(self, error: httpx2.HTTPError | TimeoutError) -> BucketProblem:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            what = f"no answer within {self.place.timeout:g} s (the setting storage_timeout)"
        return BucketUnreachable(
            self.place.bucket, f"Object Storage cannot be reached: {what}; look at region and network"
        )


_REFUSED = (BucketRefused, "the request was refused")
_KINDS: dict[int, tuple[type[BucketProblem], str]] = {
    401: (BucketDenied, "the signature was not accepted; check the profile, its key, and the clock of this machine"),
    403: (BucketDenied, "a policy must allow it: manage objects in the bucket"),
    404: (BucketMissing, "the bucket does not exist, or a policy does not let it be seen"),
    409: (BucketRefused, "the bucket is in a state that does not allow it, such as a retention rule"),
    429: (BucketBusy, "too many requests; try again later"),
    503: (BucketBusy, "the service is overloaded; try again later"),
}


def _conflict(response: httpx2.Response) -> bool:
    return response.status_code == 412 or (response.status_code == 409 and _read_error(response)[0] in _CONFLICTS)


def _no_bucket(response: httpx2.Response) -> bool:
    return _read_error(response)[0] not in ("ObjectNotFound", "")


def _read_error(response: httpx2.Response) -> tuple[str, str]:
    """The code and the message in the body of an error."""
    try:
        data: Any = json.loads(response.content)
    except ValueError:
        return "", ""
    if not isinstance(data, Mapping):
        return "", ""
    return str(data.get("code") or "")[:100], str(data.get("message") or "")


def _moment(text: str | None, otherwise: datetime | None = None) -> datetime:
    """A date of HTTP."""
    try:
        found = email.utils.parsedate_to_datetime(text or "")
    except ValueError:
        return otherwise or datetime.now(UTC)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _instant(text: str | None) -> datetime:
    """A date of a listing, RFC 3339."""
    if not text:
        return datetime.fromtimestamp(0, UTC)
    return datetime.fromisoformat(text)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _pause(attempt: int) -> float:
    # Spread, so that those who met do not meet again.
    return min(_LONGEST, _FIRST * 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
