"""`NamedModel`: what the loop in a workflow sees of a model: its name and its facts, and nothing that connects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from locus.models import Model, ModelRequest, OnChunk

__all__ = ["NamedModel"]


class NamedModel:
    """A model that is asked elsewhere.

    Args:
        model: whose name, price and address it has.
    """

    #: A run would hold it open in the workflow.
    session = None

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> NoReturn:
        """Refuse: a workflow asks by an activity.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"model {self.name} was asked in a workflow; only activities ask models")
