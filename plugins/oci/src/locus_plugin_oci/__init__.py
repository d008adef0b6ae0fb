"""OCI Generative AI and Object Storage: models, and journals in a bucket.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_oci.bucket import OCIBucketBackend
    from locus_plugin_oci.errors import (
        BucketBusy,
        BucketDamaged,
        BucketDenied,
        BucketFailed,
        BucketMissing,
        BucketProblem,
        BucketRefused,
        BucketTooNew,
        BucketUnreachable,
        CredentialsUnusable,
        StoreClosed,
    )
    from locus_plugin_oci.model import OciModel
    from locus_plugin_oci.settings import OciSettings

__all__ = [
    "BucketBusy",
    "BucketDamaged",
    "BucketDenied",
    "BucketFailed",
    "BucketMissing",
    "BucketProblem",
    "BucketRefused",
    "BucketTooNew",
    "BucketUnreachable",
    "CredentialsUnusable",
    "OCIBucketBackend",
    "OciModel",
    "OciSettings",
    "StoreClosed",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_oci.bucket": ("OCIBucketBackend",),
        "locus_plugin_oci.errors": (
            "BucketBusy",
            "BucketDamaged",
            "BucketDenied",
            "BucketFailed",
            "BucketMissing",
            "BucketProblem",
            "BucketRefused",
            "BucketTooNew",
            "BucketUnreachable",
            "CredentialsUnusable",
            "StoreClosed",
        ),
        "locus_plugin_oci.model": ("OciModel",),
        "locus_plugin_oci.settings": ("OciSettings",),
    },
)
