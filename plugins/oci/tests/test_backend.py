"""``backend="oci:bucket/prefix"``: one object a file, and what of the service's answers comes through."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus.core.errors import ConfigError
from locus.files import BackendError, FileStore
from locus.plugins.providers import provide
from locus_plugin_oci.errors import BucketProblem, StoreClosed
from locus_plugin_oci.files import OCIBucketFiles, make
from locus_testkit import BackendFeatures, FileStoreContract

from .emulator import BUCKET, Fault
from .kit import Home

pytestmark = pytest.mark.anyio


def files_of(home: Home, prefix: str = "team/files", **more: object) -> OCIBucketFiles:
    return OCIBucketFiles(BUCKET, prefix=prefix, settings=home.settings(**more))


class TestFiles(FileStoreContract):
    features = BackendFeatures(persistent=True, shared=True)

    @pytest.fixture(autouse=True)
    def here(self, home: Home) -> None:
        self.home = home

    def make_files(self, folder: Path) -> FileStore:
        return files_of(self.home)


async def test_an_object_has_the_name_of_its_file(home: Home) -> None:
    async with files_of(home) as files:
        await files.save("/notes/100%\u00ad.txt", b"x")
    assert home.names() == ["team/files/notes/100%25%C2%AD.txt"]


async def test_what_no_path_names_is_not_listed(home: Home) -> None:
    async with files_of(home, prefix="") as files:
        await files.save("/a", b"x")
        stored = home.bucket.objects["a"]
        for name in ("folder/", "b//c", "%61", "../up", "x/./y"):
            home.bucket.objects[name] = stored
        assert [info.path for info in await files.list("/")] == ["/a"]


async def test_prefixes_know_nothing_of_each_other(home: Home) -> None:
    async with files_of(home, prefix="a") as one, files_of(home, prefix="a/b") as two, files_of(home, "ab") as three:
        await two.save("/x", b"")
        await three.save("/y", b"")
        assert [i.path for i in await one.list("/")] == ["/b/x"]
        assert [i.path for i in await two.list("/")] == ["/x"]


async def test_a_path_that_is_too_long_for_a_name_is_refused(home: Home) -> None:
    async with files_of(home) as files:
        with pytest.raises(BackendError, match="invalid_path"):
            await files.save("/" + "/".join(["d" * 200] * 4), b"")


@pytest.mark.parametrize("done", [True, False])
async def test_a_lost_answer_is_found_out(home: Home, done: bool) -> None:
    home.bucket.faults.append(Fault(times=None, name="files/a", status=0, done=done))
    async with files_of(home, retries=1) as files:
        if done:
            await files.save("/a", b"x", version="")
        else:
            with pytest.raises(BucketProblem, match="cannot be reached"):
                await files.save("/a", b"x", version="")
        assert [i.path for i in await files.list("/")] == (["/a"] if done else [])


async def test_closed_files_say_so(home: Home) -> None:
    files = files_of(home)
    await files.aclose()
    with pytest.raises(StoreClosed):
        await files.load("/a")


def test_a_name_gives_files_of_a_prefix(home: Home) -> None:
    made = provide("backend", "oci:journals/team/files", settings={"oci": home.settings()})
    assert isinstance(made, OCIBucketFiles)
    assert (made.bucket, made.prefix) == ("journals", "team/files")
    assert make("journals", home.settings()).prefix == "files"
    with pytest.raises(ConfigError, match="bucket must consist"):
        make("", home.settings())
