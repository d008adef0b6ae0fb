"""What all contracts share: both backends, declared features, and no quiet way out of a promise.

A subclass inherits the tests. One that it cannot keep yet is overridden with an expected failure that says
why, so that the report shows the gap, and a fix shows that the excuse is stale::

    @pytest.mark.xfail(reason="the server forgets usage when it streams", strict=True)
    async def test_usage_is_reported_when_streaming(self) -> None:
        await super().test_usage_is_reported_when_streaming()
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import pytest

from locus_testkit.contracts.features import check_features, missing_features

__all__ = ["LEFT_OUT", "Contract", "ContractBroken", "LeftOut"]

#: By node id of the class: how many of its tests are not asked for, and the features behind them.
LeftOut: TypeAlias = dict[str, tuple[int, frozenset[str]]]

#: What the test kit's plugin deselected; there from the start of every session that has the plugin.
LEFT_OUT: pytest.StashKey[LeftOut] = pytest.StashKey()


class ContractBroken(TypeError):
    """A subclass of a contract leaves out a promise without saying so.

    Args:
        cls: the subclass.
        promises: the names of the tests that it overrides.
    """

    def __init__(self, cls: type, promises: list[str]) -> None:
        self.cls, self.promises = cls, tuple(promises)
        super().__init__(
            f"{cls.__qualname__} overrides {', '.join(promises)}: a promise of a contract may only be "
            'overridden with @pytest.mark.xfail(reason="...", strict=True), calling super(), or not at all'
        )


class Contract:
    """The base of the contracts. Its tests run on asyncio and on trio, whatever the project's others do."""

    #: The backends to prove; leave one out only where the code cannot run on it.
    backends: ClassVar[tuple[str, ...]] = ("asyncio", "trio")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        broken = _silenced_promises(cls)
        if broken:
            raise ContractBroken(cls, broken)
        check_features(cls)

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Run each async test on each backend.

        Raises:
            UsageError: the plugin that leaves out what is not declared is not loaded.
        """
        missing = missing_features(cls, metafunc.definition.originalname)
        if missing and LEFT_OUT not in metafunc.config.stash:
            raise pytest.UsageError(
                f"{cls.__qualname__} does not declare {', '.join(missing)}, and nothing leaves its tests out: "
                "load the test kit's pytest plugin, `-p locus_testkit`"
            )
        if "anyio_backend" in metafunc.fixturenames:
            metafunc.parametrize("anyio_backend", cls.backends, scope="class")

    def test_every_promise_is_kept_or_excused(self) -> None:
        """No test of the contract is overridden but by an xfail with a reason, also not after the fact."""
        assert _silenced_promises(type(self)) == []


def _silenced_promises(cls: type) -> list[str]:
    """The promises that a class, or a mix-in of it, overrides without an xfail mark that has a reason."""
    first: dict[str, type] = {}
    origin: dict[str, type] = {}
    for base in cls.__mro__:
        for name in vars(base):
            if name.startswith("test_"):
                first.setdefault(name, base)
                if issubclass(base, Contract):
                    origin[name] = base
    return sorted(n for n, made in origin.items() if first[n] is not made and not _has_excuse(vars(first[n])[n]))


def _has_excuse(test: object) -> bool:
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    return any(
        mark.name == "xfail" and str(mark.kwargs.get("reason", "")).strip() and mark.kwargs.get("strict", True)
        for mark in marks
    )
