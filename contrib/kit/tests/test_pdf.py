"""The text of PDF files, and what becomes of those that are made to break a reader."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import anyio
import pytest
from pypdf import PdfReader, PdfWriter

from locus_kit.pdf import PdfBounds, PdfError, PdfMissing, PdfText, is_pdf, read_pdf, read_pdf_sync
from locus_testkit.pdf_files import make_pdf, write_objects

PAPER = make_pdf(["Gallium (Ga) melts\nat 29.8 degrees.", "It costs 5 €."], "Gallium \\ a metal")
#: A page that takes hours.
ENDLESS = make_pdf(["a\n" * 300_000])


def read(data: bytes, **bounds: Any) -> PdfText:
    return read_pdf_sync(data, "locus-plugin-web", PdfBounds(**bounds))


def of_objects(tree: bytes, page: bytes = b"/Contents 5 0 R", content: bytes = b"", info: bytes = b"<< >>") -> bytes:
    packed = zlib.compress(content)
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [%s] >>" % tree,
            b"<< /Type /Page /Parent 2 0 R %s >>" % page,
            info,
            b"<< /Filter /FlateDecode /Length %d >> stream\n%s\nendstream" % (len(packed), packed),
        ]
    )


def encrypted(password: str, algorithm: str) -> bytes:
    writer, out = PdfWriter(clone_from=PdfReader(io.BytesIO(PAPER))), io.BytesIO()
    writer.encrypt(user_password=password, owner_password="owner", algorithm=algorithm)
    writer.write(out)
    return out.getvalue()


@pytest.mark.anyio
async def test_a_pdf_is_read_page_by_page() -> None:
    found = await read_pdf(PAPER, "locus-plugin-web")
    assert found == PdfText(title="Gallium \\ a metal", pages=("Gallium (Ga) melts\nat 29.8 degrees.", "It costs 5 €."))
    assert found.text == "[page 1]\nGallium (Ga) melts\nat 29.8 degrees.\n[page 2]\nIt costs 5 €."
    assert is_pdf(PAPER)
    assert not is_pdf(b"text about %PDF-".rjust(2_000))


def test_a_pdf_without_a_password_to_open_it_is_read() -> None:
    assert read(encrypted("", "RC4-128")).pages[1] == "It costs 5 €."


@pytest.mark.parametrize(
    ("bounds", "pages", "stopped"),
    [
        ({"pages": 3}, ("a\nb",) * 3, "pages"),
        ({"chars": 5}, ("a\nb", "a\n"), "chars"),
        ({"lines": 3}, ("a\nb",) * 2, "lines"),
    ],
)
def test_reading_ends_at_its_bounds(bounds: dict[str, int], pages: tuple[str, ...], stopped: str) -> None:
    found = read(make_pdf(["a\nb"] * 4), **bounds)
    assert (found.pages, found.stopped) == (pages, stopped)


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"%PDF-", "damaged", id="empty"),
        pytest.param(b"%PDF-1.7\n" + b"\0\xff" * 1_000, "damaged", id="junk"),
        pytest.param(PAPER[: len(PAPER) // 2], "damaged", id="truncated"),
        pytest.param(encrypted("secret", "AES-256"), "encrypted", id="encrypted"),
        pytest.param(of_objects(b"2 0 R " * 3), "damaged", id="pages in a circle"),
        pytest.param(of_objects(b"3 0 R", b"/Contents 5 0 R /A " + DEEP), "damaged", id="a deep page"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, why: str) -> None:
    with pytest.raises(PdfError, match=why):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(of_objects(b"3 0 R", info=b"<< /Title %s >>" % DEEP), id="a deep title"),
        pytest.param(of_objects(b"3 0 R", content=b"\0" * 80_000_000), id="a bomb"),
    ],
)
def test_what_is_hostile_in_a_page_leaves_it_blank_or_unread(data: bytes) -> None:
    found = read(data)
    assert found.text in ("[page 1]", "[page 1]\n(this page cannot be read)")


def test_of_very_many_pages_the_first_are_read() -> None:
    found = read(of_objects(b"3 0 R " * 100_000), pages=7)
    assert (len(found.pages), found.stopped) == (7, "pages")


def test_a_page_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(PdfError, match="takes more time than a PDF may"):
        read(ENDLESS, seconds=0.1)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that were started."""
    found: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return found


@pytest.mark.anyio
async def test_cancelling_ends_the_process(started: list[subprocess.Popen[bytes]]) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(read_pdf, ENDLESS, "locus-plugin-web", PdfBounds(seconds=1_000))
            while not started:  # noqa: ASYNC110 - a thread starts it
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        while started[0].poll() is None:  # noqa: ASYNC110 - its thread is on the way to its end
            await anyio.sleep(0.01)


def test_the_process_imports_nothing_from_here_and_has_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "was-run"
    for name in ("pypdf", "json", "resource", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read(PAPER).pages[1] == "It costs 5 €."
    assert not mark.exists()


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PdfMissing, match=r'pip install "locus-plugin-web\[pdf\]"'):
        read(PAPER)


def test_the_library_is_not_loaded_here() -> None:
    code = "import sys, locus_kit.pdf as pdf; print('pypdf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
