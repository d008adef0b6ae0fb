"""A provider on `locus_wire` walks through everything that goes wrong between it and its server."""

from __future__ import annotations

from locus_testkit.hostile import HostileServerContract

from .toy import GOOD, Toy


class TestToy(HostileServerContract):
    good = GOOD

    def make_model(self, base_url: str, key: str) -> Toy:
        return Toy(base_url, key)
