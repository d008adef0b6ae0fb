"""The settings of the plugin: the table ``[plugins.logging]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import Attribute, field, frozen

from locus.core import EMPTY, freeze
from locus_kit.validators import integer
from locus_plugin_logging.levels import level_number

__all__ = ["LoggingSettings"]


def _level(_: object, attribute: Attribute[Any], value: str | int) -> None:
    level_number(value)


def _levels(_: object, attribute: Attribute[Any], value: Mapping[str, str | int]) -> None:
    for level in value.values():
        level_number(level)


@frozen(kw_only=True)
class LoggingSettings:
    """What is logged, and where.

    Args:
        level: what is less important is not logged: a name of `logging`, in any case, or a number.
        format: ``"json"``, one object a line, or ``"text"``, ``key=value``.
        payloads: log prompts, arguments, results and answers as well.
        max_chars: how much of a text a line shows, in characters.
        levels: by type of event (``"checkpoint"``), the level it has in place of the usual one.
        logger: the logger of `logging` that gets the lines. While neither it nor one above it has a handler, they go
            to standard error.
        run_log: a file that gets every event in full; None = none. `read_run_log` reads it.
        run_log_max_bytes: the file is set aside as ``.1``, ``.2``, ... before it would grow beyond this.
        run_log_backups: how many of those are kept.
        run_log_chunks: write streamed chunks as well.
        run_log_fsync: wait at the end of a segment until the disk has what was written.
    """

    level: str | int = field(default="INFO", validator=_level)
    format: Literal["json", "text"] = "json"
    payloads: bool = False
    max_chars: int = field(default=1_000, validator=integer(1))
    levels: Mapping[str, str | int] = field(default=EMPTY, converter=freeze, validator=_levels)
    logger: str = "locus.run"
    run_log: str | None = None
    run_log_max_bytes: int = field(default=50_000_000, validator=integer(1))
    run_log_backups: int = field(default=5, validator=integer(0))
    run_log_chunks: bool = True
    run_log_fsync: bool = False
