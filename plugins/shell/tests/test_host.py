"""Without a sandbox: a person allows each command."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus_testkit import call

from .kit import MARK, agent, gone, outcomes

pytestmark = pytest.mark.anyio


async def test_on_the_host_each_command_is_asked_about(tmp_path: Path) -> None:
    commands = [call("execute", command=f"echo {n} >> log") for n in (1, 2, 3)]
    made = agent(tmp_path, *commands, shell={"unsafe_host": True})
    first = await made.run("x")
    assert first.interrupts[0].question == (
        'May this command run on this machine, without a sandbox? execute(command="echo 1 >> log", timeout=null)'
    )
    assert not (tmp_path / "log").exists()
    second = await made.resume(first, "allow")
    third = await made.resume(second, {"reason": "not this one"})
    result = await made.resume(third, {"arguments": {"command": "echo edited >> log; pwd"}})
    assert (tmp_path / "log").read_text() == "1\nedited\n"
    assert outcomes(result) == [
        "exit code 0",
        "Rejected: a person refused this call: not this one",
        f"exit code 0\n{tmp_path}\n",
    ]


async def test_on_the_host_always_for_the_approval_plugin_is_not_always_here(tmp_path: Path) -> None:
    commands = [call("execute", command=f"echo {n} >> log") for n in (1, 2)]
    made = agent(tmp_path, *commands, shell={"unsafe_host": True}, approval=True)
    first = await made.run("x")
    second = await made.resume(first, "always" if "always" in map(str, first.interrupts[0].options) else "allow")
    assert second.stop_reason == "Interrupted"
    assert (tmp_path / "log").read_text() == "1\n"


async def test_on_the_host_a_command_has_a_time_as_well_and_takes_its_children_along(tmp_path: Path) -> None:
    command = call("execute", command=f"sleep {MARK.decode()} & sleep {MARK.decode()}", timeout=0.5)
    made = agent(tmp_path, command, shell={"unsafe_host": True})
    result = await made.resume(await made.run("x"), "allow")
    assert outcomes(result) == ["stopped after 0.5 s: the time was up"]
    assert await gone()
