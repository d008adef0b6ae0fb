"""The scripted model is a model: it keeps the promises that the contract asks of any."""

from __future__ import annotations

from collections.abc import Sequence

from locus.core.codec import encode
from locus.models.protocol import Model
from locus_testkit import ModelContract, ModelFeatures, ScriptedModel, Sent, Turn

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

    def sent(self, model: Model) -> Sequence[Sent]:
        assert isinstance(model, ScriptedModel)
        return [Sent(messages=[encode(m) for m in r.messages], tools=encode(r.tools)) for r in model.requests]
