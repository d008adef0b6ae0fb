"""The settings of the plugin: the table ``[plugins.sqlite]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_

__all__ = ["SqliteSettings", "Sync"]

#: How far a commit has got when it is reported: to the disk, or to the operating system.
Sync = Literal["full", "normal"]


def _more_than(least: float) -> Any:
    def check(_: object, attribute: Attribute[Any], value: float | None) -> None:
        if value is not None and not value > least:
            raise ValueError(f"{attribute.name} is {value!r}; use more than {least}")

    return check


@frozen(kw_only=True)
class SqliteSettings:
    """How a file of journals is kept.

    Args:
        sync: ``"full"``: what was committed survives a power cut. ``"normal"``: it survives the death of the process;
            a power cut may take the newest commits back, in order, so an effect may happen a second time.
        lease: seconds after which a worker that does not renew its claims is taken for dead. It is renewed three times
            in that time, by a timer.
        busy_timeout: seconds to wait for another process's write before `FileLocked`.
        max_bytes: how far the file may grow before `DiskFull`; None = as far as the disk.
        keep_ended_days: days after which a thread whose run has ended is deleted; None = never. What
            `locus_kit.retention.prunable` keeps is kept: what is open, held or still needed. It happens when a thread
            is given back or the store is closed, at most 24 times in that span for all the processes of a file.
    """

    sync: Sync = field(default="full", validator=in_(("full", "normal")))
    lease: float = field(default=30.0, validator=_more_than(0.0))
    busy_timeout: float = field(default=10.0, validator=_more_than(0.0))
    max_bytes: int | None = field(default=None, validator=_more_than(0))
    keep_ended_days: float | None = field(default=None, validator=_more_than(0))
