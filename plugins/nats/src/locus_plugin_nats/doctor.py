"""``locus plugins doctor nats``: what a power cut takes; with an address, whether that server can be used."""

from __future__ import annotations

from locus.core.errors import StoreError
from locus_plugin_nats.address import parse_address
from locus_plugin_nats.durability import describe_durability
from locus_plugin_nats.session import Session
from locus_plugin_nats.settings import NatsSettings

__all__ = ["examine"]


async def examine(settings: NatsSettings, wanted: str) -> list[tuple[str, str, str]]:
    """Try a server; nothing is made on it.

    Args:
        settings: of the plugin.
        wanted: the address of a server; ``""`` for none.

    Returns:
        For the server its address, what is wrong or ``""``, and what a power cut takes.

    Raises:
        ConfigError: the address is invalid.
    """
    what = describe_durability(settings)
    if not wanted:
        return [("", "", f"{what}; `locus plugins doctor nats://HOST:PORT` tries a server")]
    address = parse_address(wanted)
    session = Session(address, settings)
    try:
        await session.examine()
    except StoreError as e:
        return [(str(address), str(e), "")]
    finally:
        await session.close()
    return [(str(address), "", f"{session.version} can be used; {what}")]
