"""`Origin`: which model wrote a turn, so that reasoning, signatures and raw blocks go back to it and to no other.

A provider refuses what another one signed, and so does its own other address, form or family of models. A provider
signs each turn that it gives, and reads each request through its origin: turns of the same origin stay as they came,
of all others there is what any model can read.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from attrs import evolve, frozen

from locus.core.messages import Message, Role
from locus.models import ModelRequest, ModelResponse, describe_left_out, make_plain

__all__ = ["Origin", "family_of"]

#: Where a turn keeps its origin.
_KEY = "locus.origin"

#: ``"openai."`` of ``"openai.gpt-5"``, as a service names who made a model that it serves.
_MAKER = re.compile(r"^(?:[a-z]+\.)+(?=[a-z])")


@frozen
class Origin:
    """Which models can read each other's turns.

    Args:
        name: equal for those that can, such as ``"openai.chat@api.groq.com/qwen"``.
    """

    name: str

    @classmethod
    def of(cls, form: str, base_url: str, model: str) -> Origin:
        """The origin of a model: its form of requests, its host, and its family.

        Args:
            form: the provider, and which of its forms of requests: ``"openai.chat"``.
            base_url: the address of the server; ``""`` for a model without one.
            model: as the server calls it.
        """
        return cls(f"{form}@{urlsplit(base_url).hostname or ''}/{family_of(model)}")

    def read(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        """The request without content that a model of this origin cannot read, and notes on what was left out.

        A turn is worked out once, so the beginning of a conversation stays the same.
        """
        kept, before, after = list[Message](), list[Message](), list[Message]()
        for message in request.messages:
            if message.role is not Role.ASSISTANT or message.extras.get(_KEY) == self.name:
                kept.append(message)
                continue
            plain = message.wire(_KEY, make_plain)
            if plain is not message:
                before.append(message)
                after += () if plain is None else (plain,)
            kept += () if plain is None else (plain,)
        if not before:
            return request, ()
        return evolve(request, messages=tuple(kept)), describe_left_out(before, after)

    def sign(self, response: ModelResponse, notes: tuple[str, ...] = ()) -> ModelResponse:
        """The response of a model of this origin.

        Args:
            response: as the provider made it.
            notes: on the request, see `read`.
        """
        message = response.message
        signed = evolve(message, extras={**message.extras, _KEY: self.name})
        return evolve(response, message=signed, notes=(*response.notes, *notes))


def family_of(model: str) -> str:
    """The family of a model: how its name begins, without who serves or made it, and without the number.

    Args:
        model: as a server calls it. One that is only a number of its own kind, an OCID, is its own family.
    """
    name = model.lower()
    if name.startswith("ocid1."):
        return name
    name = name.removeprefix("ft:").rpartition("/")[2].partition(":")[0]
    name = _MAKER.sub("", name)
    family = re.match(r"[a-z]+(?:-[a-z]+)*", name)
    if family is None:
        return name
    # The sizes of one family read each other's signatures.
    return "claude" if family[0].startswith("claude") else family[0]
