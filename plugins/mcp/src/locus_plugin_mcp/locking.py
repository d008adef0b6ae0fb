"""``locus mcp lock``: starts the servers and compares their tools with the accepted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve, field, frozen

from locus.core.errors import UnknownName
from locus_plugin_mcp.files import with_file
from locus_plugin_mcp.lock import Definition, ServerLock, ToolChange
from locus_plugin_mcp.servers import McpServers
from locus_plugin_mcp.settings import McpSettings

__all__ = ["Examined", "examine_locks"]


@frozen(kw_only=True)
class Examined:
    """One server, and its tools that are held back.

    Args:
        server: its name in the settings.
        sentence: its state.
        problem: why it cannot be used, or ``""``.
        changes: the tools that are held back.
        lock: the file with the accepted tools; None if the server is not locked or cannot be.
        now: the present definitions of its tools.
    """

    server: str
    sentence: str
    problem: str = ""
    changes: tuple[ToolChange, ...] = ()
    lock: ServerLock | None = None
    now: Mapping[str, Definition] = field(factory=dict, repr=False)

    def accept(self) -> None:
        """Accept its tools as they are now.

        Raises:
            OSError: the lock cannot be written.
        """
        if self.lock is not None:
            self.lock.write(self.now)


async def examine_locks(settings: McpSettings | None, accepted: Collection[str] = ()) -> list[Examined]:
    """Connect to the servers, and disconnect again.

    Args:
        settings: which servers there are.
        accepted: the names of those whose tools are accepted as they are.

    Raises:
        UnknownName: no server of such a name is configured.
    """
    given = settings or McpSettings()
    every = {name: each for name, each in with_file(given).servers.items() if not each.disabled}
    for name in accepted:
        if name not in every:
            raise UnknownName("MCP server", name, every)
    found: list[Examined] = []
    # Without locks at first, so that a damaged one does not prevent looking at its server.
    servers = {name: evolve(each, required=False) for name, each in every.items()}
    async with McpServers(evolve(given, servers=servers, mcpServers={}, file=None, lock=False)) as connected:
        for link in connected.links:
            lock = ServerLock.of(given.lock, link.name, every[link.name])
            if link.error is not None:
                found.append(Examined(server=link.name, sentence=str(link.error), problem=str(link.error)))
            elif lock is None:
                found.append(Examined(server=link.name, sentence="not locked: lock = false"))
            else:
                found.append(_examine(lock, link.listing.definitions, accepts=link.name in accepted))
    return found


def _examine(lock: ServerLock, now: Mapping[str, Definition], *, accepts: bool) -> Examined:
    count = f"{len(now)} tool{'' if len(now) == 1 else 's'}"
    try:
        before = None if accepts else lock.read()
        if before is None:
            lock.write(now)
            return Examined(server=lock.server, sentence=f"{count} accepted, in {lock.path}", lock=lock, now=now)
    except (OSError, ValueError) as e:
        problem = f"the lock {lock.path} cannot be read or written: {e}; --accept {lock.server} replaces it"
        return Examined(server=lock.server, sentence=problem, problem=problem)
    changes = lock.changes(before, now)
    sentence = f"{len(changes)} of {count} held back" if changes else f"{count}, as accepted"
    return Examined(server=lock.server, sentence=sentence, changes=changes, lock=lock, now=now)
