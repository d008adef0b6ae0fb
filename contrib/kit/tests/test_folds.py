"""What a store remembers of threads that it gave back."""

from __future__ import annotations

from locus_kit.folds import Folds


def test_only_those_that_were_kept_last_stay() -> None:
    folds: Folds[int, str] = Folds(most=3)
    for n in (1, 2, 3, 1, 4):
        folds.keep(n, f"fold {n}")
    assert len(folds) == 3
    assert [folds.find(n, lambda _: True) for n in (1, 2, 3, 4)] == ["fold 1", None, "fold 3", "fold 4"]


def test_one_that_does_not_fit_is_forgotten() -> None:
    folds: Folds[str, str] = Folds()
    folds.keep("t", "old")
    assert folds.find("t", lambda kept: kept == "new") is None
    assert len(folds) == 0
