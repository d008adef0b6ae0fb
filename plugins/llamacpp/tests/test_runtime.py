"""How the runtime is loaded and its server started, on a stand-in; the end-to-end tests have the real one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from locus_plugin_llamacpp import runtime
from locus_plugin_llamacpp.errors import EngineFailed
from locus_plugin_llamacpp.runtime import EngineOptions, read_ahead, start

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def parameters() -> SimpleNamespace:
    return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    """Notes what it was started with, and what its folder looked like then."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.socket = Path(*given.hostnames)
        self.mode = stat.S_IMODE(self.socket.parent.stat().st_mode)

    def handle_completions(self, request: object) -> None:
        """The first request, which loads the model."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """What the environment said of waiting threads when the runtime was imported: later is too late."""
    found: dict[str, str | None] = {}

    def imported(_: str) -> Any:
        found.update({name: os.environ.get(name) for name in PATIENT})
        return SimpleNamespace(CommonParams=parameters, Server=Server)

    monkeypatch.setattr(runtime, "resolve", imported)
    for name in PATIENT:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    return found


def test_threads_are_configured_not_to_spin_before_the_runtime_is_imported(seen: dict[str, str | None]) -> None:
    start(Path("m.gguf"), EngineOptions(n_ctx=256))

    assert seen == PATIENT


def test_what_the_environment_says_of_threads_is_respected(
    seen: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")

    start(Path("m.gguf"), EngineOptions(n_ctx=256))

    assert seen == {**PATIENT, "OMP_WAIT_POLICY": "ACTIVE"}


@pytest.mark.usefixtures("seen")
def test_the_socket_is_in_a_private_folder_that_is_gone_and_has_a_key_of_its_own() -> None:
    one, two = (start(Path("m.gguf"), EngineOptions(n_ctx=256)) for _ in range(2))

    assert one.mode == 0o700
    assert not one.socket.parent.exists()
    assert one.socket != two.socket
    assert len(*one.given.api_keys) >= 32
    assert one.given.api_keys != two.given.api_keys


@pytest.mark.usefixtures("seen")
def test_the_own_chat_template_reaches_the_runtime() -> None:
    assert start(Path("m.gguf"), EngineOptions(n_ctx=256, template="{{ x }}")).given.chat_template == "{{ x }}"
    assert not hasattr(start(Path("m.gguf"), EngineOptions(n_ctx=256)).given, "chat_template")


def test_a_file_is_read_to_its_end_before_it_is_loaded_and_that_can_be_given_up(tmp_path: Path) -> None:
    class GiveUpError(Exception):
        pass

    blocks: list[int] = []

    def check() -> None:
        blocks.append(1)
        if len(blocks) == 4:
            raise GiveUpError

    file = tmp_path / "x.gguf"
    file.write_bytes(bytes(3 * (1 << 22)))
    read_ahead(file, check)
    assert len(blocks) == 3
    with pytest.raises(GiveUpError):
        read_ahead(file, check)


def test_a_file_that_cannot_be_read_ahead_is_left_to_the_runtime(tmp_path: Path) -> None:
    read_ahead(tmp_path / "none.gguf", lambda: None)
    read_ahead(tmp_path, lambda: None)


def test_a_runtime_that_cannot_be_imported_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Any:
        raise ImportError("no such module")

    monkeypatch.setattr(runtime, "resolve", missing)
    for name in PATIENT:
        monkeypatch.setenv(name, "0")
    with pytest.raises(EngineFailed, match="pip install xllamacpp"):
        start(Path("m.gguf"), EngineOptions(n_ctx=256))
