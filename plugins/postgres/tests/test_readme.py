"""What the README says to type to the server works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from locus.journal import Appended
from locus_plugin_postgres import PostgresDenied, PostgresStore
from locus_testkit.contracts._samples import bodies_of, texts

from .server import Server

pytestmark = pytest.mark.anyio

README = Path(__file__).parents[1] / "README.md"


def statements(schema: str) -> str:
    """The block about roles, for the schema of a test."""
    (found,) = re.findall(r"```text\n(CREATE ROLE.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return re.sub(r"\blocus\b", schema, found).replace("locus_worker", f"worker_{schema}")


async def test_a_worker_needs_the_rights_that_are_listed_and_no_others(server: Server, schema: str) -> None:
    async with PostgresStore(server.url(), schema=schema) as owner:
        await owner.setup()
    server.sql(statements(schema))
    url = server.url(f"worker_{schema}", "another s3cr3t")
    async with PostgresStore(url, schema=schema) as worker:
        claim = await worker.claim("t", "w")
        assert await worker.append(claim, texts(2)) is Appended.OK
        assert await worker.renew(claim)
        await worker.release(claim)
        await worker.fork("t", 1, "fork", texts(1))
        assert len(await worker.threads()) == 2
        assert await worker.delete("t")
    async with PostgresStore(url, schema=f"{schema}_other") as worker:
        with pytest.raises(PostgresDenied, match="this user lacks a right"):
            await worker.threads()


async def test_a_backup_is_restored_with_what_was_committed(server: Server, schema: str, tmp_path: Path) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, texts(2))
        dump = [server.program("pg_dump"), f"--schema={schema}", "--dbname", server.url()]
        saved = subprocess.run(dump, capture_output=True, text=True, check=True).stdout  # noqa: ASYNC221
        await store.append(claim, texts(1))
        server.sql(f"DROP SCHEMA {schema} CASCADE")
        restore = [server.program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "--dbname", server.url()]
        subprocess.run(restore, input=saved, capture_output=True, text=True, check=True)  # noqa: ASYNC221
    async with PostgresStore(server.url(), schema=schema) as store:
        assert bodies_of(await store.read("t")) == list(texts(2))
