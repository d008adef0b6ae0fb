"""What the plugin offers, readable without importing an HTTP client or cryptography."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="oci",
    api=(1, 0),
    summary="Models of OCI Generative AI, and journals and files in an Object Storage bucket.",
    settings="locus_plugin_oci.settings:OciSettings",
    harmless=("timeout", "connect_timeout", "silence", "connections"),
    provides={
        "model": "locus_plugin_oci.model:make",
        "models": "locus_plugin_oci.listing:models",
        "default_model": "locus_plugin_oci.listing:default_model",
        "checkpointer": "locus_plugin_oci.bucket:make",
        "backend": "locus_plugin_oci.files:make",
    },
    compat_paths={"locus.memory.backends:OCIBucketBackend": "locus_plugin_oci.bucket:OCIBucketBackend"},
)
