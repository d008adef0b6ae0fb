"""How the server is reached, and what it says it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from locus_plugin_anthropic.blocks import NAME
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_wire import Client, Endpoint, Key, Outgoing, Sign

__all__ = ["ListedModel", "client_of", "key_is_known", "list_models"]


@frozen
class ListedModel:
    """A model that the server lists."""

    name: str
    note: str


def client_of(own: AnthropicSettings) -> Client:
    """The client of a server.

    Args:
        own: its address, and the credentials.
    """
    headers = {"anthropic-version": own.api_version}
    if own.betas:
        headers["anthropic-beta"] = ",".join(own.betas)
    key = Key(provider=NAME, given=own.api_key, env=own.variables[0], needed=own.at_anthropic)
    return Client(
        Endpoint(
            provider=NAME,
            base_url=own.base_url.rstrip("/").removesuffix("/v1"),
            headers=headers,
            sign=_sign(own, key),
            remedy=key.remedy,
            timeout=own.timeout,
            silence=own.silence,
            connections=own.connections,
        )
    )


def key_is_known(own: AnthropicSettings) -> bool:
    """Whether a key or a token is known."""
    key, token = _optional(own)
    return any(each.is_async or each.find() is not None for each in (key, token))


async def list_models(client: Client, deadline: float | None = None) -> list[ListedModel]:
    """The models that the server lists, newest first.

    Raises:
        ModelError: it lists none, or cannot be asked.
    """
    return await client.get("/v1/models?limit=1000", _read_listing, deadline=deadline)


def _read_listing(data: Any) -> list[ListedModel]:
    return [ListedModel(str(row["id"]), _note(row)) for row in data["data"]]


def _note(row: Mapping[str, object]) -> str:
    parts = [str(row["display_name"])] if row.get("display_name") else []
    for key, words in (("max_input_tokens", "tokens of context"), ("max_tokens", "of an answer")):
        count = row.get(key)
        if isinstance(count, int):
            parts.append(f"{count:,} {words}")
    if row.get("lifecycle") in ("deprecated", "retired"):
        parts.append(str(row["lifecycle"]))
    return ", ".join(parts)


def _optional(own: AnthropicSettings) -> tuple[Key, Key]:
    keys, tokens = own.variables
    key = Key(provider=NAME, given=own.api_key, env=keys, needed=False)
    return key, Key(provider=NAME, given=own.auth_token, env=tokens, needed=False)


def _sign(own: AnthropicSettings, wanted: Key) -> Sign:
    key, token = _optional(own)
    # What the settings give is meant; of the environment's two the key counts.
    token_first = own.api_key is None and own.auth_token is not None
    # The last one raises where a key is needed.
    order = ((token, True), (wanted, False)) if token_first else ((key, False), (token, True), (wanted, False))

    def sign(_: Outgoing) -> Mapping[str, str]:
        return next((_header(text, bearer=bearer) for each, bearer in order if (text := each.find())), {})

    async def ask(_: Outgoing) -> Mapping[str, str]:
        for each, bearer in order:
            if text := await each.ask():
                return _header(text, bearer=bearer)
        return {}

    return ask if any(each.is_async for each, _ in order) else sign


def _header(text: str, *, bearer: bool) -> Mapping[str, str]:
    return {"authorization": f"Bearer {text}"} if bearer else {"x-api-key": text}
