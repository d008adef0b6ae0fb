"""Several handles on one place: they see each other's files, and lose none of each other's edits."""

from __future__ import annotations

import anyio

from locus.files import BackendError
from locus_testkit.contracts._backend import BackendPromises, Files, OpenFiles
from locus_testkit.contracts.features import needs

__all__ = ["SharingPromises"]

_HANDLES, _EDITS = 4, 8


class SharingPromises(BackendPromises):
    """Handles of one process here; those of several do the same."""

    @needs("persistent")
    async def test_another_handle_finds_the_same(self, open_files: OpenFiles) -> None:
        """What was written is there, also where the handle that wrote it is closed."""
        first = await open_files()
        await first.write("/d/a.txt", "text\n")
        assert await (await open_files()).lines("/d/a.txt") == ["text"]
        await self.close_backend(first.backend)
        second = await open_files()
        assert await second.lines("/d/a.txt") == ["text"]
        assert await second.grep("text") == [("/d/a.txt", 1, "text")]
        assert await second.tree() == ["/d/", "/d/a.txt"]

    @needs("shared")
    async def test_edits_at_the_same_time_are_all_kept(self, open_files: OpenFiles) -> None:
        """Each changes another place of one file; one that comes too late gets ``conflict`` and tries again."""
        handles = [await open_files() for _ in range(_HANDLES)]
        places = [[f"<{n}.{at}>" for at in range(_EDITS)] for n in range(_HANDLES)]
        await handles[0].write("/a.txt", "\n".join(place for row in places for place in row))

        async def edit_all(files: Files, row: list[str]) -> None:
            for place in row:
                while True:
                    try:
                        await files.edit("/a.txt", place, "done")
                        break
                    except BackendError as e:
                        if e.code not in ("conflict", "timeout"):
                            raise

        async with anyio.create_task_group() as tasks:
            for files, row in zip(handles, places, strict=True):
                tasks.start_soon(edit_all, files, row)
        assert await handles[0].lines("/a.txt") == ["done"] * (_HANDLES * _EDITS)

    @needs("shared")
    async def test_reader_sees_one_version_whole(self, open_files: OpenFiles) -> None:
        """Never the beginning of one and the end of another."""
        writer, reader = await open_files(), await open_files()
        await writer.write("/a.txt", "0\n" * 5000)
        done = anyio.Event()

        async def write_on() -> None:
            for n in range(1, 20):
                await writer.write("/a.txt", f"{n % 10}\n" * 5000)
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_on)
            while not done.is_set():
                lines = await reader.lines("/a.txt")
                assert (len(set(lines)), len(lines)) == (1, 5000)

    async def test_threads_do_not_disturb_each_other(self, files: Files) -> None:
        """Tools of one turn run at the same time."""

        async def write_some(n: int) -> None:
            for at in range(5):
                await files.write(f"/d{n}/{at}.txt", f"{n} {at}")

        async with anyio.create_task_group() as tasks:
            for n in range(_HANDLES):
                tasks.start_soon(write_some, n)
        found = await files.grep("")
        assert found == sorted((f"/d{n}/{at}.txt", 1, f"{n} {at}") for n in range(_HANDLES) for at in range(5))
