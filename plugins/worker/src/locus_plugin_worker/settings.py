"""The settings of the plugin: the table ``[plugins.worker]``."""

from __future__ import annotations

from attrs import field, frozen

from locus_kit.validators import integer, optional

__all__ = ["WorkerSettings"]


@frozen(kw_only=True)
class WorkerSettings:
    """What `locus submit` keeps to.

    Args:
        max_depth: the most threads that may wait in a queue before another one is submitted; None = any number.
    """

    max_depth: int | None = field(default=None, validator=optional(integer(1)))
