"""A worker in a process of its own: ``python -m`` is told where the bucket is, and says what came of its appends."""

from __future__ import annotations

import sys

import anyio

from locus.core.journal import Outcome, StepId
from locus_plugin_oci import OCIBucketBackend, OciSettings


async def main(url: str, config: str) -> None:
    """Take the thread, and add to it whenever a line comes."""
    settings = OciSettings(config_file=config, storage_endpoint=url, namespace="axtenancyns")
    store = OCIBucketBackend("journals", settings=settings)
    claim = await store.claim("t", "the other process")
    _say("claimed")
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        got = await store.append(claim, [Outcome(run_id="run", step_id=StepId(0, line.strip()), value=line.strip())])
        _say(got.value)
    await store.aclose()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
