"""How a call ends when it does not end well: cancelled, late, failed. And many at once."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from locus.core.errors import ContextOverflow, ModelError
from locus.models import Chunk, ModelResponse
from locus_testkit.contracts._model import MakeModel, Promises, build_request, check_text
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import never

__all__ = ["EndPromises"]

_PONG = "Answer with the one word pong, nothing else."
_COUNT = "Count from one to one thousand in words, one a line."


class EndPromises(Promises):
    """A call that ends early leaves nothing behind, and says what happened by type."""

    @needs("exact")
    async def test_cancelling_ends_the_call(self, make: MakeModel) -> None:
        """A cancelled caller is free at once though the provider is silent, and the model can be used again."""
        model = await make(never, "pong")
        answered: list[ModelResponse] = []

        async def ask() -> None:
            answered.append(await model.complete(build_request(_COUNT)))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            began = anyio.current_time()
            group.cancel_scope.cancel()
        assert anyio.current_time() - began < self.patience
        assert answered == [], "the call was to wait for ever, and ended"
        assert check_text(await model.complete(build_request(_PONG))).strip()

    @needs("streaming")
    async def test_cancelling_a_stream_ends_it(self, make: MakeModel) -> None:
        """A listener that cancels gets nothing more, the call is cancelled, the model can be used again."""
        model = await make("one two three four five six seven eight nine ten", "pong")
        heard: list[Chunk] = []
        with anyio.CancelScope() as scope:

            async def listen(chunk: Chunk) -> None:
                heard.append(chunk)
                scope.cancel()
                await anyio.lowlevel.checkpoint()

            await model.complete(build_request(_COUNT), listen)
        assert scope.cancelled_caught, "the call swallowed the cancellation"
        assert len(heard) == 1
        assert check_text(await model.complete(build_request(_PONG))).strip()

    @needs("deadline", "exact")
    async def test_deadline_ends_the_call(self, make: MakeModel) -> None:
        """A provider that is silent until the deadline is a `ModelError`, in time."""
        model = await make(never)
        began = anyio.current_time()
        with anyio.fail_after(self.patience), pytest.raises(ModelError):
            await model.complete(build_request(_COUNT, deadline=began + 0.05))

    @needs("deadline")
    async def test_deadline_in_the_past_fails_at_once(self, make: MakeModel) -> None:
        """The deadline has already passed."""
        model = await make("pong")
        with anyio.fail_after(self.patience), pytest.raises(ModelError):
            await model.complete(build_request(_PONG, deadline=anyio.current_time() - 1))

    @pytest.mark.parametrize(
        ("failure", "retryable"),
        [
            (ModelError("overloaded", status=503, retryable=True), True),
            (ModelError("no such model", status=404), False),
            (ContextOverflow("the request is too long", status=400), False),
        ],
        ids=["overloaded", "refused", "overflow"],
    )
    @needs("exact", "failures")
    async def test_failure_is_typed(self, make: MakeModel, failure: ModelError, *, retryable: bool) -> None:
        """A provider's failure is a `ModelError` that says whether to try again; the next call works."""
        model = await make(failure, "pong")
        with pytest.raises(ModelError) as caught:
            await model.complete(build_request(_PONG))
        # A provider may have a type of its own for it; what is too long is distinguished from everything else.
        assert isinstance(caught.value, ContextOverflow) is isinstance(failure, ContextOverflow)
        assert caught.value.retryable is retryable
        assert caught.value.status == failure.status
        assert str(caught.value)
        assert check_text(await model.complete(build_request(_PONG))).strip()

    async def test_calls_at_the_same_time_do_not_mix(self, make: MakeModel) -> None:
        """One model serves many runs: each call gets one answer and only its own chunks."""
        words = [f"word-{i} of its own" for i in range(5)]
        model = await make(*words)
        answers: list[str] = []

        async def ask() -> None:
            pieces: list[str] = []

            async def listen(chunk: Chunk) -> None:
                if chunk.kind == "text":
                    pieces.append(chunk.text)
                await anyio.lowlevel.checkpoint()

            text = check_text(await model.complete(build_request(_PONG), listen))
            answers.append(text)
            if self.features.streaming:
                assert "".join(pieces) == text

        async with anyio.create_task_group() as group:
            for _ in words:
                group.start_soon(ask)
        assert len(answers) == len(words)
        if self.features.exact:
            assert sorted(answers) == sorted(words)
