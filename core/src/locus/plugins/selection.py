"""Which plugins: a pure merge of what the file, the environment, the command line and the code say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from attrs import field

from locus.core.errors import ConfigError
from locus.core.frozen import EMPTY, FrozenDict, freeze, frozen

__all__ = ["Origin", "Selection", "listed", "select"]

Origin = Literal["config", "required", "environment", "command line", "code"]

_NOT = "no:"
_ALL = "*"


def listed(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, such as ``LOCUS_PLUGINS``; blanks around them do not count."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


@frozen
class Selection:
    """What was chosen.

    Args:
        enabled: name -> who asked for it last, in the order in which the names were written down; what is
            required stays so.
        disabled: name -> who switched it off.
    """

    enabled: FrozenDict[str, Origin] = field(default=EMPTY, converter=freeze)
    disabled: FrozenDict[str, Origin] = field(default=EMPTY, converter=freeze)


def select(layers: Iterable[tuple[Origin, Sequence[str]]]) -> Selection:
    """The plugins that are on after every layer has spoken.

    Args:
        layers: from the weakest to the strongest. An item is ``"name"``, ``"no:name"``, or ``"no:*"`` for
            "nothing of what weaker layers asked for".

    Raises:
        ConfigError: a required plugin is switched off, or an item is empty.
    """
    enabled: dict[str, Origin] = {}
    disabled: dict[str, Origin] = {}
    required: set[str] = set()
    for origin, items in layers:
        before = tuple(enabled)
        for item in items:
            off = item.startswith(_NOT)
            name = item.removeprefix(_NOT).strip()
            if not name:
                raise ConfigError(f"{item!r} ({origin}) names no plugin; write 'name' or 'no:name'")
            if origin == "required":
                required.add(name)
            if not off:
                enabled[name] = "required" if name in required else origin
                disabled.pop(name, None)
                continue
            for gone in before if name == _ALL else (name,):
                if gone in required:
                    raise ConfigError(f"plugin {gone!r} is required and switched off by {item!r} ({origin}); drop one")
                enabled.pop(gone, None)
                disabled[gone] = origin
    return Selection(enabled, disabled)
