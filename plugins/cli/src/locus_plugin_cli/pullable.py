"""What ``locus models pull`` can fetch: the pinned files of the installed plugins.

An optional kind in a manifest's ``provides``, a reference to a plain function:

- ``"pinned_files"``: ``(settings) -> rows of (PinnedFile, folder)``, the files that the plugin would fetch when it
  first needs them, and where it looks for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from locus.core.errors import LocusError, PluginError
from locus.plugin import Plugin
from locus_kit.pinned import PinnedFile, obtain, show_progress
from locus_plugin_cli.model_choice import ask, settings_of
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line

__all__ = ["Pullable", "list_pullable"]

_KIND = "pinned_files"


@frozen
class Pullable:
    """A file that can be fetched.

    Args:
        file: what is pinned.
        folder: where it belongs.
    """

    file: PinnedFile
    folder: Path

    def obtain(self) -> Path:
        """The file, fetched if it is missing; progress is shown on standard error.

        Raises:
            PinnedFileError: it cannot be obtained.
        """
        return obtain(self.file, self.folder, progress=show_progress(self.file.label))


def list_pullable(project: Project) -> list[Pullable]:
    """The files that the installed plugins can fetch; plugins that cannot list theirs are named on standard error."""
    found: list[Pullable] = []
    for manifest in project.catalogue.manifests():
        reference = manifest.provides.get(_KIND)
        if reference is None:
            continue
        try:
            rows = ask(manifest.name, reference, settings_of(manifest, project))
            found += [_pullable(manifest, row) for row in rows]
        except LocusError as e:
            say(f"{manifest.name} cannot list its files: {one_line(str(e))}")
    return found


def _pullable(manifest: Plugin, row: Any) -> Pullable:
    match row:
        case (PinnedFile() as file, Path() as folder):
            return Pullable(file, folder)
    raise PluginError(manifest.name, f"its list of files holds {row!r:.60}; a row is (PinnedFile, folder)")
