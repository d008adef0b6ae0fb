"""Backends and file stores that break a promise each, in one place."""

from __future__ import annotations

import fnmatch
import re
import time
import unicodedata
from collections.abc import Callable
from typing import Any

from attrs import evolve

from locus.files import BackendError, FileContent, FileInfo, GrepMatch, virtual_path

from .backends import Backend, Store

__all__ = ["BROKEN_BACKENDS", "BROKEN_STORES"]


class NumbersFromZero(Backend):
    def page(self, lines: list[str], offset: int, limit: int) -> list[tuple[int, str]]:
        return [(n - 1, line) for n, line in super().page(lines, offset, limit)]


class CountsTheEndAsALine(Backend):
    def lines(self, text: str) -> list[str]:
        return text.split("\n")


class NumbersThePage(Backend):
    def page(self, lines: list[str], offset: int, limit: int) -> list[tuple[int, str]]:
        return [(n, line) for n, (_, line) in enumerate(super().page(lines, offset, limit), 1)]


class TakesNoLimitForNothing(Backend):
    def page(self, lines: list[str], offset: int, limit: int) -> list[tuple[int, str]]:
        return super().page(lines, offset, limit) if limit > 0 else []


class SplitsOnEverySeparator(Backend):
    def lines(self, text: str) -> list[str]:
        return text.splitlines()


class DropsEmptyFiles(Backend):
    def write(self, path: str, contents: str) -> str:
        return super().write(path, contents) if contents else path


class OverwritesTheBeginning(Backend):
    def write(self, path: str, contents: str) -> str:
        with self.store.lock:
            old = self.store.files.get(self.path(path), (b"", 0))[0].decode()
        return super().write(path, contents + old[len(contents) :])


class HidesDirectories(Backend):
    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        return [info for info in super().ls(path, recursive=recursive) if not info.is_dir]


class NormalisesText(Backend):
    def encode(self, contents: str) -> bytes:
        return super().encode(unicodedata.normalize("NFC", contents))


class CutsLargeFiles(Backend):
    def encode(self, contents: str) -> bytes:
        return super().encode(contents)[:1_000_000]


class TranslatesLineEnds(Backend):
    def replaced(self, text: str, old: str, new: str) -> str:
        return super().replaced(text.replace("\r\n", "\n"), old.replace("\r\n", "\n"), new)


class ReplacesTheFirst(Backend):
    def replaced(self, text: str, old: str, new: str) -> str:
        return text.replace(old, new, 1)


class CountsWithoutOverlaps(Backend):
    def replaced(self, text: str, old: str, new: str) -> str:
        if text.count(old) != 1:
            raise ValueError("not once")
        return text.replace(old, new)


class MakesWhatIsMissing(Backend):
    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        if self.path(path) not in self.store.files:
            self.write(path, "")
        return super().read(path, offset, limit)


class ReadsDirectoriesAsMissing(Backend):
    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        try:
            return super().read(path, offset, limit)
        except BackendError:
            raise BackendError("file_not_found") from None


class FilesBelowFiles(Store):
    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        path = virtual_path(path)
        with self.lock:
            self.compare(path, version)
            self.saves += 1
            self.files[path] = data, self.saves


class WritesBelowFiles(Backend):
    def write(self, path: str, contents: str) -> str:
        path = self.path(path)
        with self.store.lock:
            self.store.check(path)
            self.store.saves += 1
            self.store.files[path] = self.encode(contents), self.store.saves
        return path


class WritesQuestionMarks(Backend):
    def encode(self, contents: str) -> bytes:
        return contents.encode(errors="replace")


class TakesPathsAsTheyAre(Backend):
    def path(self, path: str) -> str:
        virtual_path(path)
        return path if path.startswith("/") else f"/{path}"

    def write(self, path: str, contents: str) -> str:
        path = self.path(path)
        self.store.files[path] = self.encode(contents), 1
        return path

    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        return self.store.files[self.path(path)][0].decode()


class KeepsNamesDecomposed(TakesPathsAsTheyAre):
    pass


class LosesNamesWithPercent(Backend):
    def path(self, path: str) -> str:
        return super().path(path.replace("%25", "%"))


class StopsAtTheRoot(Backend):
    def path(self, path: str) -> str:
        return super().path(path.replace("..", "."))


class CutsLongNames(Backend):
    def path(self, path: str) -> str:
        return super().path(path)[:200]


class HasAFileAtFirst(Backend):
    def infos(self, path: str) -> list[FileInfo]:
        return super().infos(path) or [FileInfo("/.keep")]


class ListsWhatBeginsAlike(Backend):
    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        found = [each for each in self.store.list("/") if each.path.startswith(self.path(path))]
        return found if found else super().ls(path, recursive=recursive)


class ListsOneLevel(Backend):
    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        return super().ls(path, recursive=False)


class CountsCharacters(Backend):
    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        found = super().ls(path, recursive=recursive)
        return [i if i.is_dir else evolve(i, size=len(self.store.load(i.path).data.decode())) for i in found]


class ListsNothingForMissing(Backend):
    def infos(self, path: str) -> list[FileInfo]:
        return self.store.list(path)


class StarsPassSlashes(Backend):
    def matcher(self, pattern: str) -> Callable[[str], object]:
        return lambda path: fnmatch.fnmatch(path, pattern)


class NeverEndsMatching(Backend):
    def matcher(self, pattern: str) -> Callable[[str], object]:
        if len(pattern) > 25:
            time.sleep(1)
        return super().matcher(pattern)


class FindsEachMatch(Backend):
    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        found = super().grep(pattern, path=path, recursive=recursive)
        return [each for each in found for _ in re.findall(pattern, each.text)]


class LosesOptionalParts(Backend):
    """What an index of three characters in a row does that does not know what a question mark means."""

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        word = "".join(c for c in pattern if c.isalpha())
        return [each for each in super().grep(pattern, path=path, recursive=recursive) if word in each.text]


class SearchesBelowTheRootAlways(Backend):
    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        return super().grep(pattern, path=path, recursive=recursive or path == "/")


class SearchesWhatItSawFirst(Backend):
    def __init__(self, store: Store | None = None) -> None:
        super().__init__(store)
        self.seen: dict[str, str] = {}

    def write(self, path: str, contents: str) -> str:
        self.seen.setdefault(self.path(path), contents)
        return super().write(path, contents)

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        search = self.searcher(pattern)
        return [GrepMatch(each, 1, text) for each, text in sorted(self.seen.items()) if search(text)]


class SearchesWholeTexts(Backend):
    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        texts = ((info.path, self.store.load(info.path).data.decode()) for info in self.infos(self.path(path)))
        return [GrepMatch(each, 1, text) for each, text in texts if re.search(pattern, text)]


class SearchesWithPython(Backend):
    def searcher(self, pattern: str) -> Callable[[str], object]:
        try:
            return re.compile(pattern).search
        except re.error as e:
            raise BackendError("invalid_pattern") from e


class NeverEndsSearching(Backend):
    def searcher(self, pattern: str) -> Callable[[str], object]:
        if pattern.endswith("*$"):
            time.sleep(1)
        return super().searcher(pattern)


class FindsWithoutBound(Backend):
    def most(self) -> int:
        return 1_000_000


class SearchesBinaries(Backend):
    def is_searched(self, data: bytes) -> bool:
        return True


class KeepsFilesToItself(Backend):
    def __init__(self, store: Store | None = None) -> None:
        super().__init__(Store())


class EditsWithoutComparing(Backend):
    def edit(self, path: str, old: str, new: str) -> str:
        text = self.replaced(self.store.load(path).data.decode(), old, new)
        time.sleep(0.002)
        return self.write(path, text)


class WritesInTwoSteps(Backend):
    def write(self, path: str, contents: str) -> str:
        super().write(path, contents[: len(contents) // 2])
        time.sleep(0.01)
        return super().write(path, contents)


class IsForOneThread(Backend):
    def write(self, path: str, contents: str) -> str:
        files = dict(self.store.files)
        time.sleep(0.005)
        self.store.files = files
        return super().write(path, contents)


BROKEN_BACKENDS: dict[Callable[[Store], Any], tuple[str, ...]] = {
    NumbersFromZero: ("test_lines_are_numbered_as_cat_does",),
    CountsTheEndAsALine: ("test_last_line_needs_no_end",),
    NumbersThePage: ("test_pages_begin_behind_the_lines_left_out",),
    TakesNoLimitForNothing: ("test_no_limit_gives_all_lines",),
    SplitsOnEverySeparator: ("test_only_newlines_end_lines",),
    DropsEmptyFiles: ("test_empty_file_exists",),
    OverwritesTheBeginning: ("test_write_replaces_all_of_a_file",),
    HidesDirectories: ("test_write_makes_parents",),
    NormalisesText: ("test_text_of_any_script_comes_back",),
    CutsLargeFiles: ("test_large_text_comes_back",),
    TranslatesLineEnds: ("test_edit_replaces_the_one_occurrence",),
    ReplacesTheFirst: ("test_edit_needs_exactly_one_occurrence",),
    CountsWithoutOverlaps: ("test_overlapping_occurrences_are_two",),
    MakesWhatIsMissing: ("test_missing_file_is_not_found",),
    ReadsDirectoriesAsMissing: ("test_directory_is_not_a_file",),
    WritesBelowFiles: ("test_file_is_not_a_directory",),
    WritesQuestionMarks: ("test_text_without_utf8_is_refused",),
    TakesPathsAsTheyAre: ("test_spellings_of_a_path_are_one_file",),
    KeepsNamesDecomposed: ("test_composed_and_decomposed_names_are_one_file",),
    LosesNamesWithPercent: ("test_odd_names_come_back",),
    StopsAtTheRoot: ("test_path_that_cannot_be_is_refused",),
    CutsLongNames: ("test_longest_names_are_taken",),
    HasAFileAtFirst: ("test_nothing_is_listed_at_first",),
    ListsWhatBeginsAlike: ("test_listing_has_entries_of_one_directory",),
    ListsOneLevel: ("test_recursive_listing_has_everything_below",),
    CountsCharacters: ("test_entries_say_how_large_and_how_old_they_are",),
    ListsNothingForMissing: ("test_missing_directory_is_not_found",),
    StarsPassSlashes: ("test_pattern_finds_files",),
    NeverEndsMatching: ("test_hostile_pattern_ends",),
    FindsEachMatch: ("test_every_line_that_matches_is_found",),
    LosesOptionalParts: ("test_every_line_that_matches_is_found",),
    SearchesBelowTheRootAlways: ("test_search_stays_in_its_directory",),
    SearchesWhatItSawFirst: ("test_search_sees_the_newest_content",),
    SearchesWholeTexts: ("test_match_is_within_one_line",),
    SearchesWithPython: ("test_pattern_that_cannot_be_is_refused",),
    NeverEndsSearching: ("test_search_for_a_hostile_pattern_ends",),
    FindsWithoutBound: ("test_matches_are_bounded",),
    SearchesBinaries: ("test_binary_file_is_not_searched",),
    KeepsFilesToItself: ("test_another_handle_finds_the_same",),
    EditsWithoutComparing: ("test_edits_at_the_same_time_are_all_kept",),
    WritesInTwoSteps: ("test_reader_sees_one_version_whole",),
    IsForOneThread: ("test_threads_do_not_disturb_each_other",),
}


class KeepsText(Store):
    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        super().save(path, data.decode(errors="replace").encode(), version=version)


class CountsChangesOfContent(Store):
    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        if self.files.get(path, (None, 0))[0] != data:
            super().save(path, data, version=version)


class NeverCompares(Store):
    def compare(self, path: str, version: str | None) -> None:
        pass


class LoadsNothingForMissing(Store):
    def load(self, path: str) -> FileContent:
        return super().load(path) if path in self.files or self.below(path) or path == "/" else FileContent(b"", "0")


class KnowsNoDirectories(Store):
    def check(self, path: str) -> None:
        pass


class LeavesAMark(Store):
    def remove(self, path: str, *, version: str | None = None) -> None:
        super().remove(path, version=version)
        self.files[path] = b"", 0


class ListsAPage(Store):
    def list(self, folder: str) -> list[FileInfo]:
        return super().list(folder)[:10]


class QuotesNames(Store):
    def list(self, folder: str) -> list[FileInfo]:
        return [evolve(info, path=info.path.replace("%25", "%")) for info in super().list(folder)]


class SwapsWithoutALock(Store):
    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        self.compare(path, version)
        time.sleep(0.005)
        super().save(path, data)


BROKEN_STORES: dict[Callable[[], Any], tuple[str, ...]] = {
    KeepsText: ("test_bytes_come_back",),
    CountsChangesOfContent: ("test_version_changes_with_each_save",),
    NeverCompares: ("test_save_of_a_version_replaces_no_other", "test_removed_file_is_gone"),
    LoadsNothingForMissing: ("test_missing_file_is_not_found",),
    KnowsNoDirectories: ("test_directory_is_not_a_file",),
    FilesBelowFiles: ("test_file_is_not_a_directory",),
    LeavesAMark: ("test_removed_file_is_gone",),
    ListsAPage: ("test_listing_has_files_below_a_folder",),
    QuotesNames: ("test_odd_names_come_back",),
    SwapsWithoutALock: ("test_handles_compare_and_swap",),
}
