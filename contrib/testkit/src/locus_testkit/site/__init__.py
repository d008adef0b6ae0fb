"""`LocalSite`: a small web on loopback, with a search, and with pages that no client should meet unprepared.

Its pages are about the chemical elements, and the questions about them have known answers, so that what an agent finds
out can be scored without a judge.
"""

from __future__ import annotations

from locus_testkit.site.elements import Element, element_pages, elements
from locus_testkit.site.hostile import INSTRUCTIONS, hostile_paths
from locus_testkit.site.pages import Page
from locus_testkit.site.questions import Question, element_questions
from locus_testkit.site.server import LocalSite

__all__ = [
    "INSTRUCTIONS",
    "Element",
    "LocalSite",
    "Page",
    "Question",
    "element_pages",
    "element_questions",
    "elements",
    "hostile_paths",
]
