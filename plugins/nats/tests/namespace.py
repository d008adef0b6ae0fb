"""A second machine, as far as the network knows: a namespace with a cable to this one, which can be pulled."""

from __future__ import annotations

import os
import subprocess
from types import TracebackType
from typing import Self

__all__ = ["Namespace"]


def _do(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stderr.strip() if done.returncode else ""
    except OSError as e:
        said = str(e)
    if said:
        raise RuntimeError(
            f"{' '.join(command)}: {said}\nThis test makes a network namespace: run `tox -e privileged` as root, on "
            "Linux with iproute2"
        )


class Namespace:
    """A context manager; in the end the namespace and its cable are gone."""

    #: Of this machine, at the cable.
    address = "10.213.77.1"

    def __init__(self) -> None:
        self.name = f"locus{os.getpid()}"
        self._here, self._there = f"lh{os.getpid()}", f"lt{os.getpid()}"

    def __enter__(self) -> Self:
        _do("ip", "netns", "add", self.name)
        try:
            _do("ip", "link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self.name)
            _do("ip", "addr", "add", f"{self.address}/30", "dev", self._here)
            _do("ip", "link", "set", self._here, "up")
            self.inside("ip", "addr", "add", "10.213.77.2/30", "dev", self._there)
            self.plug()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _do("ip", "netns", "del", self.name)

    def inside(self, *command: str) -> None:
        """Run a command in it."""
        _do(*self.command(*command))

    def command(self, *command: str) -> list[str]:
        """A command line that runs in it."""
        return ["ip", "netns", "exec", self.name, *command]

    def pull(self) -> None:
        """Pull the cable: from now on packets are lost, and nobody is told."""
        self.inside("ip", "link", "set", self._there, "down")

    def plug(self) -> None:
        """Plug the cable in."""
        self.inside("ip", "link", "set", self._there, "up")
