"""A promise can only be left out of a contract by saying so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_testkit import Contract, ContractBroken

pytest_plugins = ["pytester"]


class Promise(Contract):
    """A contract with one promise."""

    def test_it_works(self) -> None:
        """It works."""


def test_override_without_a_mark_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(ContractBroken, match="test_it_works") as caught:

        class _Silent(Promise):
            def test_it_works(self) -> None:
                return

    assert caught.value.promises == ("test_it_works",)


def test_promise_set_to_none_is_refused() -> None:
    with pytest.raises(ContractBroken):
        type("Gone", (Promise,), {"test_it_works": None})


@pytest.mark.parametrize(
    "mark",
    [
        pytest.mark.skip(reason="no time"),
        pytest.mark.xfail,
        pytest.mark.xfail(reason="  "),
        pytest.mark.xfail(reason="flaky", strict=False),
    ],
    ids=["skip", "no reason", "blank reason", "not strict"],
)
def test_override_with_another_mark_is_refused(mark: pytest.MarkDecorator) -> None:
    def override(self: Any) -> None:
        return

    with pytest.raises(ContractBroken):
        type("Excused", (Promise,), {"test_it_works": mark(override)})


def test_override_by_a_mix_in_is_refused() -> None:
    class MixIn:
        def test_it_works(self) -> None:
            return

    with pytest.raises(ContractBroken):
        type("Mixed", (MixIn, Promise), {})


def make_excused() -> type[Promise]:
    @pytest.mark.xfail(reason="the server is slow", strict=True)
    def override(self: Any) -> None:
        raise AssertionError

    return type("Excused", (Promise,), {"test_it_works": override})


def test_override_by_an_xfail_with_a_reason_is_accepted() -> None:
    make_excused()().test_every_promise_is_kept_or_excused()


def test_subclass_of_an_excused_class_needs_no_new_excuse() -> None:
    type("Child", (make_excused(),), {})().test_every_promise_is_kept_or_excused()


def test_promise_replaced_after_the_class_was_made_is_found_by_the_contract_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Patched(Promise):
        pass

    nothing: Callable[[Any], None] = lambda self: None  # noqa: E731  # a method to be
    monkeypatch.setattr(Patched, "test_it_works", nothing)
    with pytest.raises(AssertionError, match="test_it_works"):
        Patched().test_every_promise_is_kept_or_excused()


def test_contracts_run_on_both_backends_whatever_the_project_says(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"
        """
    )
    pytester.makepyfile(
        """
        import pytest
        import sniffio
        from locus.journal import MemoryStore
        from locus_testkit import Contract, JournalStoreContract

        @pytest.mark.anyio
        class TestMine(Contract):
            async def test_where(self, anyio_backend):
                assert sniffio.current_async_library() == anyio_backend

        class TestStore(JournalStoreContract):
            def make_store(self, folder):
                return MemoryStore()

            @pytest.mark.xfail(reason="to see that it works", strict=True)
            async def test_new_thread_is_empty(self, store):
                raise AssertionError
        """
    )
    outcomes = run(pytester, "-k", "TestMine or new_thread").parseoutcomes()
    assert outcomes == {"passed": 3, "xfailed": 2, "deselected": outcomes["deselected"]}


def test_store_contract_says_what_it_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from locus_testkit import JournalStoreContract

        class TestMine(JournalStoreContract):
            pass
        """
    )
    result = run(pytester, "-k", "new_thread")
    result.assert_outcomes(errors=2, deselected=result.parseoutcomes()["deselected"])
    result.stdout.fnmatch_lines(["*TestMine needs make_store(self, folder)*"])


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest with only the plugins that count."""
    return pytester.runpytest_inprocess(
        "--disable-plugin-autoload",
        "-p",
        "anyio",
        "-p",
        "locus_testkit",
        "-p",
        "no:cacheprovider",
        *arguments,
    )
