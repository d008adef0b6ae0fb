"""How much is tried: little in the default run, much with ``LOCUS_PROOFS=thorough``, which ``tox -e proofs`` sets."""

from __future__ import annotations

import os

__all__ = ["THOROUGH"]

THOROUGH = os.environ.get("LOCUS_PROOFS", "quick") != "quick"
