"""The manifest: a frozen value that refuses what could not work, where its author reads it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError

from locus.plugin import Stash, StashKey
from locus.plugins.manifest import Plugin


def manifest(**fields: Any) -> Plugin:
    return Plugin(**{"name": "audit", "api": (1, 0), "summary": "Writes what happened.", **fields})


def test_a_manifest_is_frozen_all_the_way_down() -> None:
    made = manifest(hooks=["audit.hooks:Audit"], provides={"model": "audit.models:make"}, after=["beacon"])

    assert (made.hooks, made.after) == (("audit.hooks:Audit",), ("beacon",))
    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.provides["model"] = "other"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Audit"}, "name is 'Audit'; use lower-case letters, digits and '_'"),
        ({"name": "audit-log"}, "name is 'audit-log'"),
        ({"hooks": ("audit hooks",)}, "hooks holds 'audit hooks'; use 'package.module:name'"),
        ({"provides": {"model": "make()"}}, r"provides holds 'make\(\)'"),
        ({"compat_paths": {"locus.hooks.builtin.A": "audit:Audit"}}, "compat_paths offers 'locus.hooks.builtin.A'"),
        ({"compat_paths": {"locus.hooks.builtin:Audit": "audit Audit"}}, "compat_paths holds 'audit Audit'"),
        ({"suffixes": ("db",)}, "suffixes holds 'db'; use the end of a file's name with its dot"),
    ],
)
def test_a_field_that_could_not_work_is_refused_with_its_value(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        manifest(**fields)


@pytest.mark.parametrize("name", ["hooks", "after"])
def test_one_text_where_several_are_expected_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"'audit' is one text where several are expected; write \('audit',\)"):
        manifest(**{name: "audit"})


def test_two_stash_keys_are_never_equal_and_what_is_kept_is_found_again() -> None:
    mine, other = StashKey[int]("count"), StashKey[int]("count")
    stash = Stash()

    stash[mine] = 1

    assert mine in stash
    assert other not in stash
    assert (stash[mine], stash.get(other, 7), stash.setdefault(other, 3), stash[other]) == (1, 7, 3, 3)
    del stash[mine]
    assert mine not in stash
    assert repr(mine) == "StashKey('count')"
