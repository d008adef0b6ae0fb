"""What can be wrong with credentials and with a bucket. What a model call can raise is in `locus_wire.errors`.

ConfigError                 (of the kernel)
└── CredentialsUnusable     a file, a profile or a key is missing or invalid
StoreError                  (of the kernel)
├── BucketProblem           Object Storage refused, or did not answer (`.bucket`, `.status`, `.code`, `.request_id`)
│   ├── BucketMissing       404: the bucket or namespace does not exist, or may not be seen
│   ├── BucketDenied        401, 403: the identity is unknown, or may not do that
│   ├── BucketRefused       another 4xx
│   ├── BucketBusy          429, 503: too many requests, however often it was tried
│   ├── BucketFailed        another 5xx
│   ├── BucketUnreachable   no connection, or no answer in time
│   └── BucketDamaged       an object is not what was written, or is missing
│       └── BucketTooNew    a newer version of this plugin wrote it (`.found`, `.supported`)
└── StoreClosed             the store was closed
"""

from __future__ import annotations

from locus.core.errors import ConfigError, StoreError

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
    "StoreClosed",
]


class CredentialsUnusable(ConfigError):
    """A request cannot be signed; the text says which file or setting to look at, and shows no key."""


class BucketProblem(StoreError):
    """Object Storage refused, or did not answer.

    Args:
        bucket: its name.
        message: what happened and what to do.
        status: the HTTP status, or None.
        code: the service's own word for it, or None.
        request_id: the service's id of the request, or None.
    """

    def __init__(
        self,
        bucket: str,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        self.bucket, self.status, self.code, self.request_id = bucket, status, code, request_id
        super().__init__(f"bucket {bucket!r}: {message}", store="oci")


class BucketMissing(BucketProblem):
    """The bucket or namespace does not exist, or the identity may not see it: the service does not say which."""


class BucketDenied(BucketProblem):
    """The identity is unknown to the service, or may not do that."""


class BucketRefused(BucketProblem):
    """The service refused the request."""


class BucketBusy(BucketProblem):
    """The service had too much to do, however often it was asked."""


class BucketFailed(BucketProblem):
    """The service failed, also after retries."""


class BucketUnreachable(BucketProblem):
    """The connection failed, or no answer came in time."""


class BucketDamaged(BucketProblem):
    """An object is not what was written, or is missing."""


class BucketTooNew(BucketDamaged):
    """A newer version of this plugin wrote an object; it was not touched.

    Args:
        bucket: its name.
        name: of the object.
        found: the version of its form.
        supported: the newest version that this installation reads.
    """

    def __init__(self, bucket: str, name: str, found: object, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(
            bucket,
            f"the object {name!r} has the form {found!r}, this installation reads up to {supported}; "
            "upgrade locus-plugin-oci to use it (nothing was changed)",
        )


class StoreClosed(StoreError):
    """The store was closed; make another one."""
