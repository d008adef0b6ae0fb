"""Keys, tokens and passwords: found by the formats of vendors, and by the names that they are assigned to.

A form is a fact, and each has its source. What has no form (``password=``, ``X-Api-Key:``) is judged: a placeholder, an
expression of a program or a plain word is not a secret. No measure of entropy by itself: it takes every hash and every
identifier for a secret.
"""

# ruff: noqa: E501  # patterns are tables
from __future__ import annotations

from collections.abc import Iterator

from locus.core import Pattern
from locus_plugin_guardrails import passwords

__all__ = ["KEYS", "keys"]

#: ``vendor -> pattern``. Where the pattern has a group, that is what is secret. The source of those without a comment is
#: the list of forms that gitleaks keeps, https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml.
KEYS = {
    "age": r"\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}\b",
    "airtable": r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b",
    "alibaba": r"\bLTAI[A-Za-z0-9]{16,20}\b",
    # https://docs.claude.com/en/api/overview (the header x-api-key)
    "anthropic": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "artifactory": r"\bAKCp[A-Za-z0-9]{10,}|\bcmVmd[A-Za-z0-9]{59}\b",
    # https://support.atlassian.com/organization-administration/docs/understand-user-api-tokens/
    "atlassian": r"\bATATT3[A-Za-z0-9_=-]{60,}|\bATCTT3[A-Za-z0-9_=-]{60,}|\bATBB[A-Za-z0-9]{28,}",
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    "aws": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "aws_pair": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}[:,;/ \t]{1,3}([A-Za-z0-9/+]{40})",
    "aws_session": r"\bIQoJb3JpZ2lu[A-Za-z0-9/+]{60,}={0,2}|\bFwoGZXIvYXdz[A-Za-z0-9/+]{60,}={0,2}",
    "aws_bedrock": r"\bABSK[A-Za-z0-9+/]{100,}={0,2}|\bbedrock-api-key-[A-Za-z0-9+/=]{60,}",
    # https://learn.microsoft.com/en-us/purview/sit-defn-client-secret-api-key
    "azure_client": r"(?:^|[^A-Za-z0-9_.~-])([A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34})",
    # https://learn.microsoft.com/en-us/purview/sit-defn-azure-storage-account-key
    "azure_storage": r"(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
    # https://learn.microsoft.com/en-us/rest/api/storageservices/create-service-sas
    "azure_sas": r"[?&]sig=([A-Za-z0-9%+/]{40,}={0,2})",
    "bearer": r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}={0,2})",
    "clojars": r"\bCLOJARS_[a-z0-9]{60}\b",
    "contentful": r"\bCFPAT-[A-Za-z0-9_-]{40,}",
    # https://docs.databricks.com/aws/en/dev-tools/auth/pat
    "databricks": r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b",
    # https://docs.digitalocean.com/reference/api/create-personal-access-token/
    "digitalocean": r"\bdo[opr]_v1_[a-f0-9]{40,}",
    # https://discord.com/developers/docs/reference#authentication
    "discord": r"\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    # https://discord.com/developers/docs/resources/webhook
    "discord_webhook": r"\bdiscord(?:app)?\.com/api/webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{60,})",
    # https://docs.docker.com/security/access-tokens/
    "docker": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    "doppler": r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
    "facebook": r"\bEAA[MC][A-Za-z0-9]{100,}",
    "figma": r"\bfigd_[A-Za-z0-9_-]{36,}",
    "firebase": r"\bAAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{130,}",
    "fly": r"\bfm[12][ar]?_[A-Za-z0-9+/=,_-]{60,}|\bfo1_[A-Za-z0-9_-]{43}\b",
    # https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    "github": r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}",
    # https://docs.gitlab.com/security/tokens/#token-prefixes
    "gitlab": r"\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.-]{16,}|\bGR1348941[A-Za-z0-9_-]{20}",
    # https://cloud.google.com/docs/authentication/api-keys, https://developers.google.com/identity/protocols/oauth2
    "google": r"\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}|\b1//0[0-9A-Za-z_-]{40,}",
    # https://grafana.com/docs/grafana/latest/administration/service-accounts/
    "grafana": r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b|\bglc_[A-Za-z0-9+/]{32,}={0,2}",
    "groq": r"\bgsk_[A-Za-z0-9]{40,}",
    "heroku": r"\bHRKU-[A-Za-z0-9_-]{36,}",
    "hubspot": r"\bpat-(?:na|eu)[0-9]-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}\b",
    # https://huggingface.co/docs/hub/security-tokens
    "huggingface": r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}",
    # https://www.rfc-editor.org/rfc/rfc7519#section-3
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    "langsmith": r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
    "linear": r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}",
    "mailchimp": r"\b[0-9a-f]{32}-us[0-9]{1,2}\b",
    "mailgun": r"\bkey-[0-9a-f]{32}\b",
    "netlify": r"\bnfp_[A-Za-z0-9]{36,}",
    "newrelic": r"\bNRAK-[A-Z0-9]{27}\b|\bNRII-[A-Za-z0-9-]{32}\b|\bNRJS-[a-f0-9]{19}\b",
    "notion": r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b",
    # https://docs.npmjs.com/about-access-tokens
    "npm": r"\bnpm_[A-Za-z0-9]{30,}",
    "nuget": r"\boy2[a-z0-9]{43}\b",
    "nvidia": r"\bnvapi-[A-Za-z0-9_-]{60,}",
    # https://platform.openai.com/docs/api-reference/authentication; OpenRouter and Langfuse write theirs like it
    "openai": r"\bsk-(?:proj-|svcacct-|admin-|or-v1-|lf-)[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}",
    "perplexity": r"\bpplx-[A-Za-z0-9]{40,}",
    "pinecone": r"\bpcsk_[A-Za-z0-9_]{40,}",
    "planetscale": r"\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}",
    "postman": r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b",
    # https://www.rfc-editor.org/rfc/rfc7468; what follows may be cut off
    "private_key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s\\:,.-]*?-----END [A-Z0-9 ]{0,40}-----|[A-Za-z0-9+/=\s\\:,.-]*)",
    "pulumi": r"\bpul-[a-f0-9]{40}\b",
    # https://the.earth.li/~sgtatham/putty/0.83/htmldoc/AppendixC.html
    "putty": r"(?s)Private-Lines: [0-9]{1,3}\s+([A-Za-z0-9+/=\s]{40,})",
    # PyPI, "API tokens" in its help
    "pypi": r"\bpypi-[A-Za-z0-9_-]{40,}",
    "replicate": r"\br8_[A-Za-z0-9]{37,}",
    "rubygems": r"\brubygems_[a-f0-9]{48}\b",
    # https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    "sendgrid": r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "sendinblue": r"\bxkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b",
    "sentry": r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    # https://shopify.dev/docs/apps/build/authentication-authorization
    "shopify": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    # https://docs.slack.dev/authentication/tokens
    "slack": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxoxe\.xox[bp]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{20,}"
    r"|hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/]{20,})",
    "sonar": r"\bsq[pau]_[a-f0-9]{40}\b",
    "square": r"\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|\bEAAA[A-Za-z0-9_-]{60}\b",
    # https://docs.stripe.com/keys
    "stripe": r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{20,}",
    "supabase": r"\bsbp_[a-f0-9]{40}\b|\bsb_secret_[A-Za-z0-9_-]{20,}",
    # https://tailscale.com/kb/1277/key-prefixes
    "tailscale": r"\btskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}",
    # https://core.telegram.org/bots/api#authorizing-your-bot
    "telegram": r"(?:\b|bot)([0-9]{8,10}:AA[A-Za-z0-9_-]{32,})",
    "terraform": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    # https://www.twilio.com/docs/glossary/what-is-a-sid
    "twilio": r"\bSK[0-9a-f]{32}\b",
    # https://developer.hashicorp.com/vault/docs/concepts/tokens#token-prefixes
    "vault": r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}",
    "xai": r"\bxai-[A-Za-z0-9]{70,}",
}

#: One pass finds whether anything may match; most texts need no second one.
_ANY = Pattern("|".join(f"(?:{pattern})" for pattern in KEYS.values()))
_EACH = [(Pattern(pattern), pattern.replace("(?", "").count("(") and 1) for pattern in KEYS.values()]


def keys(text: str) -> Iterator[tuple[int, int]]:
    """The places of keys, tokens and passwords."""
    if _ANY.matches(text):
        for pattern, group in _EACH:
            for start, end in pattern.spans(text):
                secret = next((s for s in pattern.spans(text[start:end], group) if group), None)
                begin, stop = (start, end) if secret is None else (start + secret[0], start + secret[1])
                if not passwords.is_placeholder(text[begin:stop]):
                    yield begin, stop
    yield from passwords.passwords(text)
