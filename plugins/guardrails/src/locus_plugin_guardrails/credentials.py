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

#: ``vendor -> pattern``. Where the pattern has a group, that is what is secret. The source is above each: a page of the
#: vendor, or ``gitleaks RULE``, a rule of https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml, or
#: ``trufflehog NAME``, a folder of https://github.com/trufflesecurity/trufflehog/tree/main/pkg/detectors.
KEYS = {
    # https://pkg.go.dev/filippo.io/age; gitleaks age-secret-key
    "age": r"\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}\b",
    # trufflehog airtablepersonalaccesstoken
    "airtable": r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b",
    # gitleaks alibaba-access-key-id
    "alibaba": r"\bLTAI[A-Za-z0-9]{16,20}\b",
    # https://docs.claude.com/en/api/overview (the header x-api-key)
    "anthropic": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    # gitleaks artifactory-api-key, artifactory-reference-token
    "artifactory": r"\bAKCp[A-Za-z0-9]{69}\b|\bcmVmd[A-Za-z0-9]{59}\b",
    # https://support.atlassian.com/organization-administration/docs/understand-user-api-tokens/
    "atlassian": r"\bATATT3[A-Za-z0-9_=-]{60,}|\bATCTT3[A-Za-z0-9_=-]{60,}|\bATBB[A-Za-z0-9]{28,}",
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    "aws": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    # the same, and a secret access key behind it
    "aws_pair": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}[:,;/ \t]{1,3}([A-Za-z0-9/+]{40})",
    # a session token; its beginning is the base64 of a header that has "origin_ec" in it
    "aws_session": r"\bIQoJb3JpZ2lu[A-Za-z0-9/+]{60,}={0,2}",
    # gitleaks aws-amazon-bedrock-api-key-long-lived, aws-amazon-bedrock-api-key-short-lived
    "aws_bedrock": r"\bABSK[A-Za-z0-9+/]{100,}={0,2}|\bbedrock-api-key-[A-Za-z0-9+/=]{60,}",
    # https://learn.microsoft.com/en-us/purview/sit-defn-client-secret-api-key
    "azure_client": r"(?:^|[^A-Za-z0-9_.~-])([A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34})",
    # https://learn.microsoft.com/en-us/purview/sit-defn-azure-storage-account-key
    "azure_storage": r"(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
    # https://learn.microsoft.com/en-us/rest/api/storageservices/create-service-sas
    "azure_sas": r"[?&]sig=([A-Za-z0-9%+/]{40,}={0,2})",
    # https://www.rfc-editor.org/rfc/rfc6750#section-2.1
    "bearer": r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}={0,2})",
    # gitleaks clojars-api-token
    "clojars": r"\bCLOJARS_[a-z0-9]{60}\b",
    # trufflehog contentfulpersonalaccesstoken
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
    # gitleaks doppler-api-token; https://docs.doppler.com/reference-link/api has the kinds
    "doppler": r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
    # gitleaks facebook-page-access-token
    "facebook": r"\bEAA[MC][A-Za-z0-9]{100,}",
    # trufflehog figmapersonalaccesstoken
    "figma": r"\bfigd_[A-Za-z0-9_-]{36,}",
    # gitleaks flyio-access-token
    "fly": r"\bfm[12][ar]?_[A-Za-z0-9+/=,_-]{60,}|\bfo1_[A-Za-z0-9_-]{43}\b",
    # https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    "github": r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}",
    # https://docs.gitlab.com/security/tokens/#token-prefixes
    "gitlab": r"\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.-]{16,}|\bGR1348941[A-Za-z0-9_-]{20}",
    # https://cloud.google.com/docs/authentication/api-keys, https://developers.google.com/identity/protocols/oauth2
    "google": r"\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}|\b1//0[0-9A-Za-z_-]{40,}",
    # https://grafana.com/docs/grafana/latest/administration/service-accounts/
    "grafana": r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b|\bglc_[A-Za-z0-9+/]{32,}={0,2}",
    # trufflehog groq
    "groq": r"\bgsk_[A-Za-z0-9]{40,}",
    # gitleaks heroku-api-key-v2
    "heroku": r"\bHRKU-[A-Za-z0-9_-]{36,}",
    # trufflehog hubspot_apikey/v2
    "hubspot": r"\bpat-(?:na|eu)[0-9]-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}\b",
    # https://huggingface.co/docs/hub/security-tokens
    "huggingface": r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}",
    # https://www.rfc-editor.org/rfc/rfc7519#section-3
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    # trufflehog langsmith
    "langsmith": r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
    # gitleaks linear-api-key
    "linear": r"\blin_api_[A-Za-z0-9]{40}\b",
    # gitleaks mailchimp-api-key
    "mailchimp": r"\b[0-9a-f]{32}-us[0-9]{1,2}\b",
    # gitleaks mailgun-private-api-token
    "mailgun": r"\bkey-[0-9a-f]{32}\b",
    # trufflehog netlify/v2
    "netlify": r"\bnfp_[A-Za-z0-9]{36,}",
    # gitleaks new-relic-user-api-key, new-relic-insert-key, new-relic-browser-api-token
    "newrelic": r"\bNRAK-[A-Z0-9]{27}\b|\bNRII-[A-Za-z0-9-]{32}\b|\bNRJS-[a-f0-9]{19}\b",
    # gitleaks notion-api-token; trufflehog notion
    "notion": r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b",
    # https://docs.npmjs.com/about-access-tokens
    "npm": r"\bnpm_[A-Za-z0-9]{30,}",
    # trufflehog nugetapikey
    "nuget": r"\boy2[a-z0-9]{43}\b",
    # trufflehog nvapi
    "nvidia": r"\bnvapi-[A-Za-z0-9_-]{60,}",
    # https://platform.openai.com/docs/api-reference/authentication; OpenRouter and Langfuse write theirs like it
    "openai": r"\bsk-(?:proj-|svcacct-|admin-|or-v1-|lf-)[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}",
    # gitleaks perplexity-api-key
    "perplexity": r"\bpplx-[A-Za-z0-9]{40,}",
    # trufflehog pinecone
    "pinecone": r"\bpcsk_[A-Za-z0-9_]{40,}",
    # gitleaks planetscale-api-token, planetscale-oauth-token, planetscale-password
    "planetscale": r"\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}",
    # gitleaks postman-api-token
    "postman": r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b",
    # https://www.rfc-editor.org/rfc/rfc7468; what follows may be cut off
    "private_key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s\\:,.-]*?-----END [A-Z0-9 ]{0,40}-----|[A-Za-z0-9+/=\s\\:,.-]*)",
    # gitleaks pulumi-api-token
    "pulumi": r"\bpul-[a-f0-9]{40}\b",
    # https://the.earth.li/~sgtatham/putty/0.83/htmldoc/AppendixC.html
    "putty": r"(?s)Private-Lines: [0-9]{1,3}\s+([A-Za-z0-9+/=\s]{40,})",
    # PyPI, "API tokens" in its help
    "pypi": r"\bpypi-[A-Za-z0-9_-]{40,}",
    # https://replicate.com/docs/topics/security/api-tokens
    "replicate": r"\br8_[A-Za-z0-9]{37,}",
    # gitleaks rubygems-api-token
    "rubygems": r"\brubygems_[a-f0-9]{48}\b",
    # https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    "sendgrid": r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    # gitleaks sendinblue-api-token
    "sendinblue": r"\bxkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b",
    # https://docs.sentry.io/security-legal-pii/security/token-formats/
    "sentry": r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    # https://shopify.dev/docs/apps/build/authentication-authorization
    "shopify": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    # https://docs.slack.dev/authentication/tokens
    "slack": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxoxe\.xox[bp]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{20,}"
    r"|hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/]{20,})",
    # https://docs.aws.amazon.com/secretsmanager/latest/userguide/mes-partner-SonarQubeToken.html
    "sonar": r"\bsq[pau]_[a-f0-9]{40}\b",
    # gitleaks square-access-token; trufflehog squareapp
    "square": r"\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|\bEAAA[A-Za-z0-9_-]{60}\b",
    # https://docs.stripe.com/keys
    "stripe": r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{20,}",
    # https://supabase.com/docs/guides/api/api-keys
    "supabase": r"\bsbp_[a-f0-9]{40}\b|\bsb_secret_[A-Za-z0-9_-]{20,}",
    # https://tailscale.com/kb/1277/key-prefixes
    "tailscale": r"\btskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}",
    # https://core.telegram.org/bots/api#authorizing-your-bot
    "telegram": r"(?:\b|bot)([0-9]{8,10}:AA[A-Za-z0-9_-]{32,})",
    # gitleaks hashicorp-tf-api-token
    "terraform": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    # https://www.twilio.com/docs/glossary/what-is-a-sid
    "twilio": r"\bSK[0-9a-f]{32}\b",
    # https://developer.hashicorp.com/vault/docs/concepts/tokens#token-prefixes
    "vault": r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}",
    # trufflehog xai
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
