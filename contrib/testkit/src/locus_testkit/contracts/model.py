"""`ModelContract`: what the loop relies on when it asks a model, one test a promise.

A provider is one method. What makes it fit to run an agent is the rest: the same answer streamed and not,
tool calls that find their results, turns that go back verbatim, honest usage, typed failures, an end when
cancelled.
"""

from __future__ import annotations

from locus_testkit.contracts._model import Differs, ModelFeatures, SentRequest
from locus_testkit.contracts._model_answers import AnswerPromises
from locus_testkit.contracts._model_ends import EndPromises
from locus_testkit.contracts._model_history import HistoryPromises

__all__ = ["Differs", "ModelContract", "ModelFeatures", "SentRequest"]


class ModelContract(AnswerPromises, HistoryPromises, EndPromises):
    """The promises of a model. Subclass it and say how yours is made.

    Example::

        class TestMyModel(ModelContract):
            features = ModelFeatures(parallel_tools=True)

            def make_model(self, *answers):
                return MyModel("tiny")
    """
