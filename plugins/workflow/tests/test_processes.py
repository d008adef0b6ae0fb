"""Workers of workflows in processes of their own, on one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.worker.tests import chaos

from .chaos import WorkLaws


@pytest.mark.proof
@pytest.mark.chaos
class TestOnOneFile(WorkLaws):
    unfenced = Path(chaos.__file__).with_name("unfenced.py")
