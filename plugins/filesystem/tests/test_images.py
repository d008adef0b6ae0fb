"""Images that `read_file` shows: by what is in the file, bounded, and only to models that are said to take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from locus import Agent
from locus.core.messages import MediaBlock
from locus.files import FileContent, FileInfo
from locus.plugins import Catalogue
from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_filesystem import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from locus_plugin_filesystem.images import MAX_IMAGE_BYTES
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_provenance.manifest import plugin as provenance
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "image/gif": b"GIF89a\x01\x00\x80\xff",
    "image/webp": b"RIFF\x24\x00\x00\xffWEBPVP8 ",
}


class Pictures:
    """An async place for whole files, all of them the same picture."""

    async def load(self, path: str) -> FileContent:
        return FileContent(PNG, "1")

    async def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        """Unused."""

    async def remove(self, path: str, *, version: str | None = None) -> None:
        """Unused."""

    async def list(self, folder: str) -> list[FileInfo]:
        return []


async def read(path: str, **settings: Any) -> Any:
    """What the model gets for a file, and what is recorded of the call."""
    turns = (call("read_file", path=path), "done")
    agent = Agent[Any, Any](ScriptedModel(*turns), filesystem=settings, catalogue=Catalogue.only(plugin))
    result = await agent.run("Look.")
    (message,) = [m for m in result.state.messages if m.tool_results]
    return message.tool_results[0].content, result.state.tool_executions[0]


@pytest.mark.parametrize("media_type", IMAGES)
async def test_an_image_is_shown_for_what_it_is_whatever_its_name(tmp_path: Path, media_type: str) -> None:
    (tmp_path / "plan.txt").write_bytes(IMAGES[media_type])
    content, done = await read("/plan.txt", root=tmp_path, images=True)
    assert content == (MediaBlock("image", media_type, data=IMAGES[media_type], name="plan.txt"),)
    assert done.known_label.is_tainted  # a picture can have an instruction in it


async def test_without_the_setting_the_model_hears_what_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(PNG)
    content, _ = await read("/plan.png", root=tmp_path)
    assert content == "not_text: /plan.png is an image (image/png), and this agent reads text alone"


async def test_a_large_image_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "exact.png").write_bytes(PNG.ljust(MAX_IMAGE_BYTES, b"\xff"))
    with (tmp_path / "plan.png").open("wb") as file:
        file.write(PNG + b"\xff")
        file.truncate(10_000_000)
    content, _ = await read("/exact.png", root=tmp_path, images=True)
    assert len(content[0].data) == MAX_IMAGE_BYTES
    content, _ = await read("/plan.png", root=tmp_path, images=True)
    assert content == "too_large: /plan.png is an image of more than 3,750,000 bytes"


async def test_other_bytes_are_not_shown_as_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\xff\xfe\x00")
    content, _ = await read("/a.png", root=tmp_path, images=True)
    assert content == "not_text: the file is not UTF-8 at byte 0"
    (tmp_path / "b.png").write_bytes(b"GIF89a is text")
    content, _ = await read("/b.png", root=tmp_path, images=True)
    assert content == "     1\tGIF89a is text"


async def test_what_may_not_be_read_is_not_shown(tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(PNG)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.png").symlink_to(outside)
    (root / "plan.png").write_bytes(PNG)
    content, _ = await read("/link.png", root=root, images=True)
    assert content == "permission_denied"
    _, done = await read("/plan.png", root=root, images=True, permissions=["deny /plan.png"])
    assert "permission_denied" in str(done.error)


async def test_images_are_read_from_every_place(tmp_path: Path) -> None:
    store = StoreBackend(tmp_path / "files.db")
    SqliteFiles(tmp_path / "files.db").save("/a.png", PNG)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.png").write_bytes(PNG)
    disk = FilesystemBackend(root)
    several = CompositeBackend(StateBackend(), {"/disk/": disk, "/store/": store, "/async/": Pictures()})
    for backend, path in (
        (store, "/a.png"),
        (disk, "/a.png"),
        (CompositeBackend(StateBackend(), {"/disk/": disk}), "/disk/a.png"),
        (several, "/disk/a.png"),
        (several, "/store/a.png"),
        (several, "/async/a.png"),
    ):
        content, _ = await read(path, backend=backend, images=True)
        assert content == (MediaBlock("image", "image/png", data=PNG, name="a.png"),)


class Lines:
    """A backend with the calls of the protocol alone."""

    def __init__(self, files: FilesystemBackend) -> None:
        for name in ("write", "read", "edit", "ls", "glob", "grep"):
            setattr(self, name, getattr(files, name))


async def test_a_backend_that_gives_lines_alone_says_that_it_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    content, _ = await read("/a.png", backend=Lines(FilesystemBackend(tmp_path)), images=True)
    assert content == "not_text: the file is not UTF-8 at byte 0"


async def test_a_call_that_a_picture_may_have_asked_for_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(PNG)
    turns = (call("read_file", path="/plan.png"), call("write_file", path="/x", contents="y"), "done")
    result = await Agent[Any, Any](
        ScriptedModel(*turns),
        filesystem={"root": tmp_path, "images": True},
        provenance=True,
        catalogue=Catalogue.only(plugin, provenance),
    ).run("Look at the plan.")
    assert result.stop_reason == "Interrupted"
