"""What each tool of the suites does: the table `labels.toml`, read."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

import cattrs
from attrs import frozen

TABLE = Path(__file__).with_name("labels.toml")


@frozen(kw_only=True)
class Labels:
    """What one tool does; `labels.toml` says what each field means.

    Args:
        effect: as of a tool of Locus.
        reads: who can write what it returns.
        own: fields of its result, at any depth, that are the user's own although the rest is not.
        targets: the parameters that name whom or what a call changes. If there are none, the tool is declared without
            targets: an empty list would mean that a call reaches nobody and nothing.
        egress: whether something leaves the user's account.
        why: the reason, for people.
    """

    effect: Literal["pure", "once"]
    reads: Literal["own", "untrusted"] = "untrusted"
    own: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    egress: bool = False
    why: str

    @property
    def has_effect(self) -> bool:
        """Whether a call changes something, or sends something to anyone."""
        return self.effect != "pure" or self.egress


@cache
def read_labels() -> dict[str, Labels]:
    """The labels by the tool's name."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    return converter.structure(tomllib.loads(TABLE.read_text(encoding="utf-8")), dict[str, Labels])
