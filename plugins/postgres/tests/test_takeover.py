"""Workers on one server are frozen, thawed and killed, and so is the server."""

from __future__ import annotations

from plugins.worker.tests.takeover import Takeover

from .conftest import ServerPlace


class TestTakeover(Takeover):
    has_server = True

    def restart(self, place: ServerPlace) -> None:
        place.server.stop()
        place.server.start()
