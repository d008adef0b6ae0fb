"""The scripted model is a model: it keeps the promises that the contract asks of any."""

from __future__ import annotations

from collections.abc import Sequence

from locus.core.codec import encode
from locus.core.messages import Role
from locus.models.protocol import Model, ModelRequest
from locus_testkit import ModelContract, ModelFeatures, ScriptedModel, SentRequest, Turn, call

ALL = ModelFeatures(
    exact=True,
    parallel_tools=True,
    structured_output=True,
    max_tokens=True,
    thinking=True,
    raw_blocks=True,
    failures=True,
    deadline=True,
    wire=True,
)


class TestScriptedModel(ModelContract):
    """With everything it offers, streaming word by word."""

    features = ALL

    def make_model(self, *answers: Turn) -> ScriptedModel:
        return ScriptedModel(*answers, chunks=True)

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        assert isinstance(model, ScriptedModel)
        return [SentRequest(messages=[encode(m) for m in r.messages], tools=encode(r.tools)) for r in model.requests]


def lively(request: ModelRequest) -> Turn:
    """What a model that understands the questions would say."""
    last = request.messages[-1]
    cities = [city for city in ("Paris", "Rome") if city in last.text]
    if request.tools and cities and last.role is Role.USER:
        return [call("temperature", city=city) for city in cities]
    return "pong ping pong"


class TestLiveModel(ModelContract):
    """A model that does not know what the contract would like to hear: the questions must suffice."""

    features = ModelFeatures(parallel_tools=True)

    def make_model(self, *answers: Turn) -> ScriptedModel:
        return ScriptedModel(lively, chunks=3, after="repeat")


class TestModelThatDoesNotStream(ModelContract):
    """... nor call tools: what is not declared is not asked for."""

    features = ModelFeatures(exact=True, streaming=False, tools=False)

    def make_model(self, *answers: Turn) -> ScriptedModel:
        return ScriptedModel(*answers)
