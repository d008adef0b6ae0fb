"""The activities: a model is asked, the body of a tool is entered, a pure step of a plugin runs."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from attrs import evolve
from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from locus.core import encode_data
from locus.core.errors import LocusError
from locus_kit.remote import NotPerformed, RemoteEffect, perform_effect
from locus_plugin_temporal.agents import Agents
from locus_plugin_temporal.effects import NOT_BEGUN
from locus_plugin_temporal.ref import LOCAL, MODEL, TOOL, EffectRef
from locus_plugin_temporal.session import EFFECT

__all__ = ["Activities"]


#: Seconds that a workflow has to answer, attempt by attempt: a query that comes while a task of it ends may be lost,
#: and the replay of a long history takes its time.
_PATIENCE = (3.0, 10.0, 30.0, 120.0)


class Activities:
    """The activities of a worker.

    Args:
        agents: those that it has.
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    @property
    def all(self) -> list[Callable[..., Any]]:
        """For ``Worker(activities=...)``."""
        return [self.model, self.tool, self.step]

    @activity.defn(name=MODEL)
    async def model(self, ref: EffectRef) -> dict[str, Any]:
        """Ask a model."""
        return await self._perform(ref)

    @activity.defn(name=TOOL)
    async def tool(self, ref: EffectRef) -> dict[str, Any]:
        """Enter the body of a tool."""
        return await self._perform(ref)

    @activity.defn(name=LOCAL)
    async def step(self, key: str) -> Any:
        """Run a pure step, whose function is in this process."""
        return encode_data(await self._agents.steps[key]())

    async def _perform(self, ref: EffectRef) -> dict[str, Any]:
        info = activity.info()
        async with _beating(info.heartbeat_timeout.total_seconds() if info.heartbeat_timeout else None):
            try:
                agent = self._agents.get(ref.agent)
                effect = await self._find(ref, info)
                model = self._agents.model(ref.agent, effect.model) if effect.model else None
            except Exception as e:
                raise ApplicationError(f"{type(e).__name__}: {e}", type=NOT_BEGUN, non_retryable=True) from e
            if ref.deadline is not None:
                effect = evolve(effect, seconds_left=max(0.0, ref.deadline - time.time()))
            try:
                came = await perform_effect(
                    effect, agent.runtime, deps=self._agents.deps, model=model, is_again=info.attempt > 1
                )
            except NotPerformed as e:
                raise ApplicationError(str(e), type=NOT_BEGUN, non_retryable=True) from e
            except LocusError as e:
                raise ApplicationError(f"{type(e).__name__}: {e}", type=type(e).__name__, non_retryable=True) from e
        return {**came, "key": ref.key, "digest": ref.digest}

    async def _find(self, ref: EffectRef, info: activity.Info) -> RemoteEffect:
        """The effect: in the memory of this process, where its workflow mostly is, or from the workflow."""
        found = self._agents.effects.get((info.workflow_id or "", info.workflow_run_id or "", ref.key))
        if found is not None:
            return found
        handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        pages: list[str] = []
        while not pages or pages[-1]:
            pages.append(await _ask(handle, ref.key, len(pages)))
        text = zlib.decompress(b64decode("".join(pages)))
        return RemoteEffect.from_json(json.loads(text))


async def _ask(handle: WorkflowHandle[Any, Any], key: str, page: int) -> str:
    """A page of an effect, from its workflow.

    Raises:
        RPCError: nothing answers.
    """
    for seconds in _PATIENCE:
        try:
            answer: str = await handle.query(EFFECT, args=[key, page], rpc_timeout=timedelta(seconds=seconds))
        except RPCError as e:
            if seconds == _PATIENCE[-1] or e.status is RPCStatusCode.NOT_FOUND:
                raise
        else:
            return answer
    raise AssertionError("the last attempt returns or raises")


@asynccontextmanager
async def _beating(seconds: float | None) -> AsyncIterator[None]:
    """Send heartbeats in the block, so that the death of this worker is noticed."""
    if seconds is None:
        yield
        return

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(seconds / 3)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
