"""Cassettes: what models really answered, recorded once and replayed in tests, without a network and without a key."""

from __future__ import annotations

from locus_testkit.cassettes.cassette import Cassette, CassetteModel, RecordMode
from locus_testkit.cassettes.errors import (
    CassetteError,
    CassetteExhausted,
    CassetteMismatch,
    CassetteMissing,
    CassetteUnused,
)
from locus_testkit.cassettes.scrubbing import Scrubber

__all__ = [
    "Cassette",
    "CassetteError",
    "CassetteExhausted",
    "CassetteMismatch",
    "CassetteMissing",
    "CassetteModel",
    "CassetteUnused",
    "RecordMode",
    "Scrubber",
]
