"""A promise of a feature that a class does not declare is not collected, and the summary says so."""

from __future__ import annotations

from typing import ClassVar

import pytest
from attrs import frozen

from locus_testkit import Contract, FeatureUnknown, StoreFeatures, needs
from locus_testkit.contracts.features import missing_features

pytest_plugins = ["pytester"]

#: A contract and its features, as a package of its own would have them.
CONTRACT = """
import pytest
from attrs import frozen
from locus_testkit import Contract, needs

@frozen(kw_only=True)
class Features:
    wings: bool = False
    legs: bool = True

class AnimalContract(Contract):
    features = Features()

    def test_it_lives(self):
        pass

    @needs("legs")
    def test_it_walks(self):
        pass

    @needs("legs", "wings")
    @pytest.mark.parametrize("height", ["1::2", "3"])
    def test_it_lands(self, height):
        raise AssertionError("it has no wings")
"""


@frozen(kw_only=True)
class Features:
    """Of the contracts below."""

    wings: bool = False
    legs: bool = True


def run(pytester: pytest.Pytester, *arguments: str, plugins: tuple[str, ...] = ("locus_testkit",)) -> pytest.RunResult:
    """pytest with only the plugins that count."""
    named = [part for name in plugins for part in ("-p", name)]
    return pytester.runpytest_inprocess("--disable-plugin-autoload", "-p", "no:cacheprovider", *named, *arguments)


# -- in a project that uses a contract ------------------------------------------------------------


def test_what_is_not_declared_is_deselected_and_named_once_a_class(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(animal=CONTRACT)
    pytester.makepyfile(
        """
        from animal import AnimalContract, Features

        class TestDog(AnimalContract):
            pass

        class TestSnake(AnimalContract):
            features = Features(legs=False)
        """
    )
    result = run(pytester, "--strict-markers")
    # Each class has the test of every contract, and what lives; the dog walks.
    result.assert_outcomes(passed=5, deselected=5)
    result.stdout.fnmatch_lines(
        [
            "*::TestDog does not declare wings: 2 tests left out",
            "*::TestSnake does not declare legs, wings: 3 tests left out",
        ]
    )


def test_what_is_declared_is_asked_for_and_nothing_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(animal=CONTRACT)
    pytester.makepyfile(
        """
        from animal import AnimalContract, Features

        class TestBird(AnimalContract):
            features = Features(wings=True)
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.no_fnmatch_line("*does not declare*")


def test_only_the_selection_is_spoken_of(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(animal=CONTRACT)
    pytester.makepyfile("from animal import AnimalContract\nclass TestDog(AnimalContract): pass")
    result = run(pytester, "-k", "lives")
    result.assert_outcomes(passed=1, deselected=4)
    result.stdout.no_fnmatch_line("*does not declare*")


def test_expected_failure_needs_what_the_promise_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(animal=CONTRACT)
    pytester.makepyfile(
        """
        import pytest
        from animal import AnimalContract, Features

        class TestDog(AnimalContract):
            @pytest.mark.xfail(reason="not yet", strict=True)
            def test_it_lands(self):
                raise AssertionError

        class TestBird(TestDog):
            features = Features(wings=True)
        """
    )
    run(pytester).assert_outcomes(passed=6, xfailed=1, deselected=1)


def test_without_the_plugin_nothing_runs_that_was_not_declared(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(animal=CONTRACT)
    pytester.makepyfile("from animal import AnimalContract\nclass TestDog(AnimalContract): pass")
    result = run(pytester, plugins=())
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestDog does not declare wings*-p locus_testkit*"])


def test_store_of_newest_states_is_not_asked_for_a_history(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        from locus.journal import MemoryStore
        from locus_testkit import JournalStoreContract, StoreFeatures

        class TestMine(JournalStoreContract):
            features = StoreFeatures(history=False)

            def make_store(self, folder):
                return MemoryStore(history=False)
        """
    )
    result = run(pytester, "-k", "parent or test_history", plugins=("anyio", "locus_testkit"))
    result.assert_outcomes(passed=2, deselected=result.parseoutcomes()["deselected"])
    result.stdout.fnmatch_lines(["*::TestMine does not declare history: 4 tests left out"])


# -- when a contract is written -------------------------------------------------------------------


def test_misspelled_feature_is_refused_when_the_contract_is_made() -> None:
    with pytest.raises(FeatureUnknown, match=r"'wing'.*did you mean 'wings'\?") as caught:

        class _Misspelled(Contract):
            features: ClassVar[Features] = Features()

            @needs("wing")
            def test_it_flies(self) -> None:
                return

    assert (caught.value.feature, caught.value.known) == ("wing", ("wings", "legs"))


def test_feature_of_a_contract_without_features_is_refused() -> None:
    with pytest.raises(FeatureUnknown, match="known: none"):
        type("Bare", (Contract,), {"test_it_flies": needs("wings")(lambda self: None)})


@pytest.mark.parametrize("features", [StoreFeatures, {"delete": False}], ids=["class", "dict"])
def test_features_that_declare_nothing_are_refused(features: object) -> None:
    with pytest.raises(FeatureUnknown, match="must be an instance like StoreFeatures"):
        type("Confused", (Contract,), {"features": features})


def test_mark_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="names no feature"):
        needs()
    with pytest.raises(TypeError, match="names no feature"):
        needs(lambda self: None)  # type: ignore[arg-type]  # the mistake


def test_marks_add_up() -> None:
    class Both(Contract):
        features: ClassVar[Features] = Features(legs=False)

        @needs("wings")
        @needs("legs")
        def test_it_lands(self) -> None:
            return

    assert missing_features(Both, "test_it_lands") == ("legs", "wings")
    assert missing_features(Both, "test_every_promise_is_kept_or_excused") == ()
