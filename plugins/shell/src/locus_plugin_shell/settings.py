"""The settings of the plugin: the table ``[plugins.shell]``."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus_kit.validators import integer, not_blank, seconds, to_tuple

__all__ = ["ShellSettings", "Way"]

Way = Literal["auto", "bwrap", "unshare"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(_: object, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    if not all(isinstance(each, str) and _NAME.fullmatch(each) for each in value):
        raise ValueError(f"{attribute.name} must be names of environment variables, got {value!r}")


@frozen(kw_only=True)
class ShellSettings:
    """Where commands run, and what they may use.

    Args:
        root: the folder that commands see as ``/work`` and may write to; made if it does not exist.
        timeout: seconds that a command may take if the call does not say.
        max_timeout: the most seconds that a call may ask for.
        memory: bytes of memory, of each process and of all together; also those of files in ``/tmp`` and ``/dev/shm``,
            a quarter of it each.
        file_size: bytes of one file.
        processes: how many processes there may be at once.
        output: bytes of output that the model is shown; of more, it is shown the beginning and the end.
        env: names of variables of this process's environment that commands see too.
        sandbox: what makes the sandbox: the program ``"bwrap"`` (bubblewrap), or this plugin by itself, with the
            system call ``"unshare"``; ``"auto"`` = bwrap where it is installed and works, else unshare.
        unsafe_host: run commands on the host, without a sandbox and without limits, each one only after a person has
            allowed it.
    """

    root: str = field(default="work", validator=not_blank)
    timeout: float = field(default=60.0, validator=seconds)
    max_timeout: float = field(default=600.0, validator=seconds)
    memory: int = field(default=1_000_000_000, validator=integer(50_000_000))
    file_size: int = field(default=64_000_000, validator=integer(1))
    processes: int = field(default=64, validator=integer(1))
    output: int = field(default=100_000, validator=integer(1_000))
    env: tuple[str, ...] = field(default=(), converter=to_tuple, validator=_variables)
    sandbox: Way = field(default="auto", validator=in_(get_args(Way)))
    unsafe_host: bool = False
