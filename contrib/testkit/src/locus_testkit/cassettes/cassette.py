"""`Cassette`: models that answer as they did when it was recorded, and models that are being recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias, final, get_args

import anyio
from attrs import asdict

from locus.core.errors import ModelError
from locus.core.messages import TextBlock
from locus.models import Chunk, Model, ModelRequest, ModelResponse, OnChunk, Price, get_model
from locus_testkit.cassettes import forms
from locus_testkit.cassettes.differences import alike, difference
from locus_testkit.cassettes.errors import (
    CassetteError,
    CassetteExhausted,
    CassetteMismatch,
    CassetteMissing,
    CassetteUnused,
)
from locus_testkit.cassettes.scrubbing import Scrubber
from locus_testkit.cassettes.tape import Entry, read_tape, write_tape

__all__ = ["Cassette", "CassetteModel", "RecordMode"]

#: ``"none"``: replay, never ask a model. ``"once"``: record if the cassette does not exist yet, else replay. ``"all"``:
#: record all again.
RecordMode: TypeAlias = Literal["none", "once", "all"]

_ANEW = "to record again: pytest --locus-record=all"


@final
class Cassette:
    """What models answer in one test.

    A request is answered by the first recorded call with the same request that was not replayed yet, whatever came
    before: runs side by side may ask in another order than when they were recorded. Requests are the same when their
    model, purpose, messages, tools, settings and output schema are.

    As a context manager it writes, at the end, what was recorded; or it raises what went wrong in the replay.

    Args:
        path: of the file, ``.jsonl``.
        mode: see `RecordMode`.
        scrubber: what hides secrets in what is recorded and compared.
        match: a function of the plain form of a request, recorded or asked, that leaves out what may differ.
        partial: whether the test may end before everything was asked for.

    Raises:
        ValueError: the mode is unknown.
        CassetteMissing: the cassette does not exist, and nothing may be recorded.
        CassetteError: the file cannot be read.
    """

    def __init__(
        self,
        path: Path | str,
        mode: RecordMode = "none",
        *,
        scrubber: Scrubber | None = None,
        match: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        partial: bool = False,
    ) -> None:
        if mode not in get_args(RecordMode):
            raise ValueError(f"mode must be one of {', '.join(map(repr, get_args(RecordMode)))}, got {mode!r}")
        self.path, self.partial = Path(path), partial
        self._scrubber, self._match = Scrubber() if scrubber is None else scrubber, match
        self._lock = Lock()
        self._failures: list[CassetteError] = []
        self._prices: dict[str, dict[str, float]] = {}
        self._entries: list[Entry] = []
        #: Whether models are asked and recorded.
        self.recording = mode == "all" or (mode == "once" and not self.path.exists())
        if self.recording:
            return
        if not self.path.exists():
            raise CassetteMissing(self.path, "the cassette does not exist; to record it: pytest --locus-record=once")
        self._entries, head = read_tape(self.path)
        self._prices = head.get("prices", {})

    def __repr__(self) -> str:
        how = "recording" if self.recording else "replaying"
        return f"<Cassette {self.path.name}: {how}, {len(self._entries)} calls, {self.unused} unused>"

    @property
    def unused(self) -> int:
        """How many recorded calls were not replayed."""
        return 0 if self.recording else sum(not entry.used for entry in self._entries)

    @property
    def failure(self) -> CassetteError | None:
        """The first request that could not be answered: a run only reports a model error; a test can ask."""
        return self._failures[0] if self._failures else None

    def model(self, model: str | Model, make: Callable[[], Model] | None = None) -> CassetteModel:
        """A model of this cassette.

        Args:
            model: ``"provider:model"``, whose provider is needed only to record; or a model.
            make: what makes the model to be recorded, where its name alone does not say.
        """
        if isinstance(model, str):
            name = model
            live = (make or (lambda: get_model(name))) if self.recording else None
            return CassetteModel(self, name, None if live is None else live())
        return CassetteModel(self, model.name, model if self.recording else None)

    def __enter__(self) -> Cassette:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self.end()

    def end(self) -> None:
        """Write what was recorded, or say what the replay came to.

        Raises:
            CassetteError: a request could not be answered, something was not asked for, or a secret would be written.
        """
        if self.recording:
            head = {"prices": self._prices} if self._prices else {}
            write_tape(self.path, self._entries, head, self._scrubber)
        elif self._failures:
            raise self._failures[0]
        elif self.unused and not self.partial:
            raise CassetteUnused(self.path, self._rest())

    # -- for its models -----------------------------------------------------------------------------

    def begin(self, name: str, request: ModelRequest) -> Entry:
        """The entry of a call that is recorded now."""
        entry = Entry(request=self._form(name, request))
        with self._lock:
            self._entries.append(entry)
        return entry

    def finish(
        self, entry: Entry, chunks: list[Chunk] | None, *, response: ModelResponse | None, error: Exception | None
    ) -> None:
        """Keep what came of a call."""
        scrub = self._scrubber
        entry.chunks = None if chunks is None else forms.chunks_form(_whole_secrets(chunks, scrub))
        entry.response = None if response is None else scrub.form(forms.response_form(response))
        entry.error = None if error is None else scrub.form(forms.error_form(error))

    def take(self, name: str, request: ModelRequest) -> Entry:
        """The recorded call that answers a request.

        Raises:
            CassetteMismatch: no recorded call has this request.
            CassetteExhausted: all of them were replayed.
        """
        asked = self._comparable(self._form(name, request))
        with self._lock:
            for entry in self._entries:
                if not entry.used and _same(self._comparable(entry.request), asked):
                    entry.used = True
                    return entry
            failure = self._explain(asked)
            self._failures.append(failure)
        raise failure

    def price(self, name: str, live: Model | None) -> Price | None:
        """What a model costs, as it was when it was recorded."""
        found = getattr(live, "price", None)
        if isinstance(found, Price):
            self._prices[name] = {key: value for key, value in asdict(found).items() if value is not None}
        known = self._prices.get(name)
        return None if known is None else Price(**known)

    def _form(self, name: str, request: ModelRequest) -> dict[str, Any]:
        form = forms.request_form(name, request)
        if "settings" in form:
            form["settings"] = self._scrubber.settings(form["settings"])
        scrubbed: dict[str, Any] = self._scrubber.form(form)
        # As it will be read again.
        plain: dict[str, Any] = json.loads(json.dumps(scrubbed))
        return plain

    def _comparable(self, form: dict[str, Any]) -> Any:
        return forms.comparable(form if self._match is None else self._match(form))

    def _explain(self, asked: Any) -> CassetteError:
        number = sum(entry.used for entry in self._entries) + len(self._failures) + 1
        left = [(n, self._comparable(entry.request)) for n, entry in enumerate(self._entries, 1) if not entry.used]
        again = [n for n, entry in enumerate(self._entries, 1) if _same(self._comparable(entry.request), asked)]
        said = f"; it is recorded as call {again[-1]}, which was replayed already" if again else ""
        if not left:
            return CassetteExhausted(
                self.path,
                f"request {number} of this test comes when all {len(self._entries)} recorded calls were "
                f"replayed{said}; {_ANEW}\nasked was:\n{difference({}, asked)}",
            )
        near, recorded = max(left, key=lambda each: (alike(each[1], asked), -each[0]))
        return CassetteMismatch(
            self.path,
            f"request {number} of this test was not recorded{said}; the nearest that was not replayed yet is "
            f"call {near} (- recorded, + asked):\n{difference(recorded, asked)}\n{_ANEW}",
        )

    def _rest(self) -> str:
        left = [
            f"  call {n} ({each.request['model']}, {each.request['purpose']}, {len(each.request['messages'])} messages)"
            for n, each in enumerate(self._entries, 1)
            if not each.used
        ]
        shown = "\n".join([*left[:10], *([f"  ... and {len(left) - 10} more"] if len(left) > 10 else [])])
        return (
            f"{len(left)} of {len(self._entries)} recorded calls were not asked for; if that is intended, pass "
            f"partial=True; {_ANEW}\n{shown}"
        )


def _same(one: Any, other: Any) -> bool:
    """Equality; of tools the order counts too, since it is in the prompt."""
    return bool(one == other) and list(one.get("tools") or ()) == list(other.get("tools") or ())


def _whole_secrets(chunks: list[Chunk], scrubber: Scrubber) -> list[Chunk]:
    """The pieces without secrets, also without those that are spread over several: these kinds become one piece."""
    texts: dict[str, str] = {}
    for chunk in chunks:
        texts[chunk.kind] = texts.get(chunk.kind, "") + chunk.text
    clean = {kind: scrubber.text(text) for kind, text in texts.items()}
    kept: list[Chunk] = []
    told: set[str] = set()
    for chunk in chunks:
        if clean[chunk.kind] == texts[chunk.kind]:
            kept.append(chunk)
        elif chunk.kind not in told:
            told.add(chunk.kind)
            kept.append(Chunk(clean[chunk.kind], chunk.kind))
    return kept


@final
class CassetteModel:
    """A `Model` of a cassette: it answers from it, or asks another model and records it.

    Args:
        cassette: where its calls are kept.
        name: the model's name.
        live: the model to be recorded; None = replay.
    """

    def __init__(self, cassette: Cassette, name: str, live: Model | None) -> None:
        self.name = name
        self.price = cassette.price(name, live)
        self._cassette, self._live = cassette, live

    def __repr__(self) -> str:
        return f"<CassetteModel {self.name!r} of {self._cassette!r}>"

    def __getattr__(self, name: str) -> Any:
        # What a provider may offer beside the protocol, such as a session.
        live = self.__dict__.get("_live")
        if live is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(live, name)

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request.

        Raises:
            CassetteError: nothing that was recorded answers it.
            ModelError: that is what was recorded; or the recorded call was cancelled, and the deadline has passed.
        """
        if self._live is not None:
            return await self._record(self._live, request, on_chunk)
        entry = self._cassette.take(self.name, request)
        for chunk in _pieces(entry):
            if on_chunk is not None:
                await on_chunk(chunk)
        if entry.error is not None:
            raise forms.error_of(entry.error)
        if entry.response is None:
            await self._forever(request)
        return forms.response_of(entry.response)

    async def _record(self, live: Model, request: ModelRequest, on_chunk: OnChunk | None) -> ModelResponse:
        entry = self._cassette.begin(self.name, request)
        chunks: list[Chunk] | None = None if on_chunk is None else []

        async def forward(chunk: Chunk) -> None:
            if on_chunk is not None and chunks is not None:
                chunks.append(chunk)
                await on_chunk(chunk)

        response: ModelResponse | None = None
        error: Exception | None = None
        try:
            response = await live.complete(request, None if on_chunk is None else forward)
        except Exception as e:
            error = e
            raise
        finally:  # a cancelled call as well, with the pieces that it had sent
            self._cassette.finish(entry, chunks, response=response, error=error)
        return response

    async def _forever(self, request: ModelRequest) -> None:
        """A call that was cancelled when it was recorded does not answer here either."""
        if request.deadline is None:
            await anyio.sleep_forever()
            return
        await anyio.sleep_until(request.deadline)
        raise ModelError(f"{self.name} did not answer by the request's deadline", provider=self.name.partition(":")[0])


def _pieces(entry: Entry) -> list[Chunk]:
    """The chunks of an answer; its whole text as one chunk if none were recorded."""
    if entry.chunks is not None:
        return forms.chunks_of(entry.chunks)
    if entry.response is None:
        return []
    content = forms.response_of(entry.response).message.content
    return [Chunk(block.text) for block in content if isinstance(block, TextBlock) and block.text]
