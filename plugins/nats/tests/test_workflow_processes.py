"""Workers of workflows in processes of their own, on a server of NATS."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.workflow.tests.chaos import WorkLaws


@pytest.mark.proof
@pytest.mark.chaos
class TestOnOneServer(WorkLaws):
    unfenced = Path(__file__).with_name("unfenced.py")
