"""`make_pdf`: a PDF of some pages, written by hand, so that a test says what is in it and may break it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

__all__ = ["make_pdf", "write_objects"]

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def make_pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A PDF with a page for each text, which Windows-1252 must have.

    Args:
        pages: the texts, of any number of lines.
        title: of the document.
    """
    content, kids = [], []
    for number, text in enumerate(pages):
        drawn = zlib.compress(b"BT /F1 12 Tf 72 720 Td 14 TL %s ET" % b" ".join(map(_show, text.split("\n"))))
        content.append(b"<< /Filter /FlateDecode /Length %d >> stream\n%s\nendstream" % (len(drawn), drawn))
        content.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R >>" % (2 * number + 5))
        kids.append(b"%d 0 R" % (2 * number + 6))
    fonts = b"/Resources << /Font << /F1 3 0 R >> >>"  # each page inherits them
    tree = b"<< /Type /Pages /Count %d /Kids [%s] %s >>" % (len(kids), b" ".join(kids), fonts)
    info = b"<< /Title (%s) >>" % _escape(title)
    return write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", tree, _FONT, info, *content])


def write_objects(objects: Sequence[bytes]) -> bytes:
    """A PDF file of objects with the numbers 1 and up: the catalogue first, what is known of the document as fourth."""
    out, places = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), []
    for number, body in enumerate(objects, 1):
        places.append(b"%010d 00000 n \n" % len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, b"".join(places))
    out += b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, table)
    return bytes(out)


def _show(line: str) -> bytes:
    return b"(%s) Tj T*" % _escape(line)


def _escape(text: str) -> bytes:
    return text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
