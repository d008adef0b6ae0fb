"""PDF files, which `read_file` gives as the lines of their text."""

from __future__ import annotations

from locus.files import BackendError
from locus_kit.pdf import PdfBounds, PdfError, PdfMissing, read_pdf, read_pdf_sync
from locus_plugin_filesystem.pages import cut_page
from locus_plugin_filesystem.text import number_lines

__all__ = ["MAX_PDF_BYTES", "show_pdf"]

#: The largest PDF that is read, in bytes.
MAX_PDF_BYTES = 20_000_000

_DISTRIBUTION = "locus-plugin-filesystem"


async def show_pdf(path: str, data: bytes, offset: int, limit: int, *, is_async: bool) -> str:
    """Lines of a PDF with their numbers; a line ``[page 2]`` is above each page.

    Args:
        path: the file.
        data: its bytes, one more than `MAX_PDF_BYTES` where it has so many.
        offset: how many lines to leave out.
        limit: how many to show at most; 0 or less means all.
        is_async: whether it may wait; else it is called from a thread, and never waits for anything.

    Raises:
        BackendError: ``not_text``: it is damaged or encrypted, or pypdf is not installed; ``too_large``.
    """
    if len(data) > MAX_PDF_BYTES:
        raise BackendError("too_large", f"{path} is a PDF of more than {MAX_PDF_BYTES:,} bytes")
    # What is behind the lines that are wanted is not read.
    bounds = PdfBounds(lines=offset + limit + 1 if limit > 0 else None)
    try:
        if is_async:
            found = await read_pdf(data, _DISTRIBUTION, bounds)
        else:
            found = read_pdf_sync(data, _DISTRIBUTION, bounds)
    except PdfMissing as e:
        raise BackendError("not_text", f"{path}: {e}") from None
    except PdfError as e:
        raise BackendError("not_text", f"{path} is a PDF that cannot be read: {e}") from None
    text = found.text
    shown = cut_page(number_lines(text, offset, limit + 1 if limit > 0 else 0), offset, limit)
    if found.stopped in ("", "lines"):
        return shown
    return f"{shown}\n[the first {len(found.pages):,} pages; the others take too much time or space to be read]"
