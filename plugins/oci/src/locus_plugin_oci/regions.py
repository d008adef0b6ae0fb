"""Which domain a region is in. Data: the service knows more regions than any release of a program.

Source: "Regions and Availability Domains" of the OCI documentation. What is not listed is in the commercial realm; a
realm of one's own has an address of its own (the settings ``endpoint`` and ``storage_endpoint``).
"""

from __future__ import annotations

import re

__all__ = ["domain_of", "is_region"]

_COMMERCIAL = "oraclecloud.com"

_DOMAINS = {
    "oraclegovcloud.com": "us-langley-1 us-luke-1 us-gov-ashburn-1 us-gov-chicago-1 us-gov-phoenix-1",
    "oraclegovcloud.uk": "uk-gov-london-1 uk-gov-cardiff-1",
    "oraclecloud8.com": "ap-chiyoda-1 ap-ibaraki-1",
    "oraclecloud9.com": "me-dcc-muscat-1 me-ibri-1",
    "oraclecloud10.com": "ap-dcc-canberra-1",
    "oraclecloud14.com": "eu-dcc-milan-1 eu-dcc-milan-2 eu-dcc-dublin-1 eu-dcc-dublin-2 "
    "eu-dcc-rating-1 eu-dcc-rating-2",
    "oraclecloud15.com": "ap-dcc-gazipur-1",
    "oraclecloud.eu": "eu-madrid-2 eu-frankfurt-2",
    "oraclecloud20.com": "eu-jovanovac-1",
    "oraclecloud21.com": "me-dcc-doha-1 me-alrayyan-1",
    "oraclecloud23.com": "us-somerset-1 us-thames-1",
    "oraclecloud24.com": "eu-dcc-zurich-1 eu-crissier-1",
    "oraclecloud26.com": "me-abudhabi-3 me-alain-1",
    "oraclecloud29.com": "me-abudhabi-2 me-abudhabi-4",
    "oraclecloud35.com": "ap-seoul-2 ap-suwon-1 ap-chuncheon-2",
    "oraclecloud42.com": "us-ashburn-2 us-newark-1",
    "oraclecloud51.com": "eu-budapest-1",
    "oraclecloud52.com": "sa-riodejaneiro-1",
}
_BY_REGION = {region: domain for domain, regions in _DOMAINS.items() for region in regions.split()}


def is_region(text: str) -> bool:
    """Whether it has the form of a region's name: what becomes part of a host name must have no other."""
    return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", text) is not None


def domain_of(region: str) -> str:
    """The domain of a region's services."""
    return _BY_REGION.get(region, _COMMERCIAL)
