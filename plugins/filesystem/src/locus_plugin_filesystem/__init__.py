"""Files for Locus agents: the six tools, and the places where files can be.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_filesystem.composite import CompositeBackend
    from locus_plugin_filesystem.directory import FilesystemBackend
    from locus_plugin_filesystem.hook import FilesystemHook
    from locus_plugin_filesystem.operations import AsyncStoreFiles, StoreFiles
    from locus_plugin_filesystem.permissions import PermissionsHook
    from locus_plugin_filesystem.settings import FilesystemSettings
    from locus_plugin_filesystem.state import StateBackend
    from locus_plugin_filesystem.store import StoreBackend
    from locus_plugin_filesystem.tools import as_backend, make_filesystem_tools
    from locus_plugin_filesystem.versions import VersionedFiles, digest_of

__all__ = [
    "AsyncStoreFiles",
    "CompositeBackend",
    "FilesystemBackend",
    "FilesystemHook",
    "FilesystemSettings",
    "PermissionsHook",
    "StateBackend",
    "StoreBackend",
    "StoreFiles",
    "VersionedFiles",
    "as_backend",
    "digest_of",
    "make_filesystem_tools",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_filesystem.composite": ("CompositeBackend",),
        "locus_plugin_filesystem.directory": ("FilesystemBackend",),
        "locus_plugin_filesystem.hook": ("FilesystemHook",),
        "locus_plugin_filesystem.operations": ("AsyncStoreFiles", "StoreFiles"),
        "locus_plugin_filesystem.permissions": ("PermissionsHook",),
        "locus_plugin_filesystem.settings": ("FilesystemSettings",),
        "locus_plugin_filesystem.state": ("StateBackend",),
        "locus_plugin_filesystem.store": ("StoreBackend",),
        "locus_plugin_filesystem.tools": ("as_backend", "make_filesystem_tools"),
        "locus_plugin_filesystem.versions": ("VersionedFiles", "digest_of"),
    },
)
