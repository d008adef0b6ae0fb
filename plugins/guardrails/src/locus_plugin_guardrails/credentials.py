"""Keys and tokens of common providers, by the prefixes that they give them so that they can be found.

No measure of entropy: it takes every hash and every identifier for a secret.
"""

from __future__ import annotations

from collections.abc import Iterator

from locus.core import Pattern

__all__ = ["KEYS", "keys"]

#: ``provider -> pattern``. Where the pattern has a group, that is what is secret.
KEYS = {
    "anthropic": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "aws": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "azure_storage": r"(?i)\bAccountKey=([A-Za-z0-9+/]{40,}={0,2})",
    "basic_auth": r"://[^/\s:@]{1,200}:([^/\s:@]{3,200})@",
    "bearer": r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}={0,2})",
    "digitalocean": r"\bdo[opr]_v1_[a-f0-9]{40,}",
    "github": r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}",
    "gitlab": r"\bgl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_-]{16,}",
    "google": r"\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}",
    "huggingface": r"\bhf_[A-Za-z0-9]{20,}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    "npm": r"\bnpm_[A-Za-z0-9]{30,}",
    "openai": r"\bsk-(?:proj-|svcacct-|admin-)[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}",
    "private_key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s\\:,.-]*?-----END [A-Z0-9 ]{0,40}-----|[A-Za-z0-9+/=\s\\:,.-]*)",
    "pypi": r"\bpypi-[A-Za-z0-9_-]{40,}",
    "sendgrid": r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "slack": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/([A-Za-z0-9/]{20,})",
    "stripe": r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{20,}",
    "telegram": r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}",
}

#: One pass finds whether anything may match; most texts need no second one.
_ANY = Pattern("|".join(f"(?:{pattern})" for pattern in KEYS.values()))
_EACH = [(Pattern(pattern), 1 if "([" in pattern else 0) for pattern in KEYS.values()]


def keys(text: str) -> Iterator[tuple[int, int]]:
    """The places of keys and tokens."""
    if not _ANY.matches(text):
        return
    for pattern, group in _EACH:
        for start, end in pattern.spans(text):
            secret = next((s for s in pattern.spans(text[start:end], group) if group), None)
            yield (start, end) if secret is None else (start + secret[0], start + secret[1])
