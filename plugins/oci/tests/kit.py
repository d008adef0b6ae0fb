"""A bucket and the stores of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define

import locus_plugin_oci.objects
from locus_plugin_oci import OCIBucketBackend, OciSettings
from locus_testkit.localserver import LocalServer

from .emulator import BUCKET, Bucket, served
from .verification import Keys, write_profile

__all__ = ["Home", "at_home"]


@define
class Home:
    """A bucket, its server, and a profile that may use it."""

    bucket: Bucket
    server: LocalServer
    config: Path

    def settings(self, **more: Any) -> OciSettings:
        """Settings of a store here."""
        given = {"config_file": str(self.config), "storage_endpoint": self.server.url, "namespace": "axtenancyns"}
        return OciSettings(**{**given, **more})

    def store(self, bucket: str = BUCKET, **more: Any) -> OCIBucketBackend:
        """One more store."""
        return OCIBucketBackend(bucket, settings=self.settings(**more))

    def names(self, part: str = "") -> list[str]:
        """The objects whose names contain something, but for pulses."""
        return sorted(n for n in self.bucket.objects if part in n and "/pulses/" not in n)


@contextmanager
def at_home(keys: Keys, folder: Path) -> Iterator[Home]:
    """A bucket for one test, whose stores do not wait between their tries."""
    bucket = Bucket(keys)
    pause = locus_plugin_oci.objects._pause  # nothing else decides how long a test takes
    locus_plugin_oci.objects._pause = lambda attempt: 0.0
    try:
        with served(bucket) as server:
            yield Home(bucket, server, write_profile(folder, keys))
    finally:
        locus_plugin_oci.objects._pause = pause
    assert [each for each in bucket.refused if each != "somebody else signed"] == []
