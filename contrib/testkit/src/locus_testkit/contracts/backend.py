"""`BackendContract`: the promises of a place for agents' files, one test each.

An agent that works on files relies on them: what it has written is what it reads and finds, a mistake is an error that
it can read, and no path, pattern or content does harm.
"""

from __future__ import annotations

from locus_testkit.contracts._backend import BackendFeatures, Files
from locus_testkit.contracts._backend_files import FilePromises
from locus_testkit.contracts._backend_grep import GrepPromises
from locus_testkit.contracts._backend_listing import ListingPromises
from locus_testkit.contracts._backend_paths import PathPromises
from locus_testkit.contracts._backend_sharing import SharingPromises
from locus_testkit.contracts._file_store import FileStoreContract

__all__ = ["BackendContract", "BackendFeatures", "FileStoreContract", "Files"]


# pytest collects from the last base to the first: the report lists the promises in their order.
class BackendContract(SharingPromises, GrepPromises, ListingPromises, PathPromises, FilePromises):
    """The promises of `locus.files.BackendProtocol`. Subclass it and say how yours is made.

    Example::

        class TestMyBackend(BackendContract):
            features = BackendFeatures(persistent=True)

            def make_backend(self, folder):
                return MyBackend(folder)
    """
