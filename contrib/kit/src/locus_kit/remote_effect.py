"""`RemoteEffect`: what an effect of a run is to do, as a value with a JSON form. See `locus_kit.remote`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from locus.core import decode, encode
from locus.core.journal import Body, StepId, entry_from_json, entry_to_json
from locus.core.labels import CLEAN, Label
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.models import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.models import ModelSettings

__all__ = ["RemoteEffect"]


@frozen(kw_only=True)
class RemoteEffect:
    """A call of a model, or the body of a tool.

    Args:
        agent: the name of the run's agent.
        thread_id, run_id, segment: of the run.
        step_id: of the effect.
        state: of the run, as the effect may see it.
        settings: how the model of the run is to answer.
        given: the label of what the run was given to do.
        request: what is asked, or None; without a deadline, and without the model.
        model: the name of the model that is asked, or ``""``.
        tool: the name of the tool that is called, or ``""``.
        seconds_left: until the deadline of the run, when this was described; or None.
        known: what the journal says of the step: questions, answers, and steps of its body.
    """

    agent: str
    thread_id: str
    run_id: str
    segment: int
    step_id: StepId
    state: AgentState
    settings: ModelSettings
    given: Label = CLEAN
    request: ModelRequest | None = None
    model: str = ""
    tool: str = ""
    seconds_left: float | None = None
    known: tuple[Body, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON form.

        Raises:
            NotSerialisable: a value has none.
        """
        form = {name: getattr(self, name) for name in _PLAIN}
        form |= {"step_id": str(self.step_id), "state": self.state.to_checkpoint(), "settings": encode(self.settings)}
        form |= {"given": encode(self.given), "known": [entry_to_json(body) for body in self.known]}
        if self.request is not None:
            # Mostly the state has the same messages, and they are long.
            own = None if self.request.messages == self.state.messages else [encode(m) for m in self.request.messages]
            form |= {"request": encode(evolve(self.request, messages=())), "messages": own}
        return form

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> RemoteEffect:
        """The inverse.

        Raises:
            CheckpointError: it is damaged.
        """
        state, request = AgentState.from_checkpoint(form["state"]), None
        if "request" in form:
            own = form["messages"]
            messages = state.messages if own is None else tuple(decode(m, Message) for m in own)
            request = evolve(decode(form["request"], ModelRequest), messages=messages)
        return cls(
            **{name: form[name] for name in _PLAIN},
            step_id=StepId.parse(form["step_id"]),
            state=state,
            settings=decode(form["settings"], type(_BLANK_SETTINGS)),
            given=decode(form["given"], Label),
            request=request,
            known=tuple(entry_from_json(body) for body in form["known"]),
        )


_BLANK_SETTINGS = ModelRequest(messages=()).settings
_PLAIN = ("agent", "thread_id", "run_id", "segment", "model", "tool", "seconds_left")
