"""A bucket without sockets, for contracts that make thousands of requests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import pytest

from locus_plugin_oci import OCIBucketBackend, OciSettings
from locus_testkit.localserver import ReceivedRequest

from .emulator import BUCKET, Bucket
from .verification import Keys, write_profile

__all__ = ["InBucket"]


class Within(httpx2.AsyncBaseTransport):
    """Brings requests to a bucket of this process; the other tests go over sockets, where it takes twice as long."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.url.raw_path.decode("ascii")
        answer = self._bucket(
            ReceivedRequest(method=request.method, path=path, headers=headers, body=await request.aread())
        )
        kind = {} if answer.media_type is None else {"content-type": answer.media_type}
        return httpx2.Response(answer.status, headers={**kind, **answer.headers}, content=b"".join(answer.body))


class InBucket:
    """Tests whose stores keep their journals in one bucket of this process."""

    bucket: Bucket
    config: Path

    @pytest.fixture(autouse=True)
    def service(self, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A bucket for each test."""
        self.bucket = bucket = Bucket(keys)
        self.config = write_profile(tmp_path, keys)
        client = partial(httpx2.AsyncClient, transport=Within(bucket))
        monkeypatch.setattr(httpx2, "AsyncClient", client)
        yield
        assert bucket.refused == []

    def make(self) -> OCIBucketBackend:
        """One more store."""
        settings = OciSettings(config_file=str(self.config), storage_endpoint="http://storage.test", retries=0)
        return OCIBucketBackend(BUCKET, settings=settings)
