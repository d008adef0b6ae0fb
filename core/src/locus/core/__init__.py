"""Values: what a run is made of. No I/O, no async, no hooks, no clock.

The names here are for data: frozen containers, and its JSON form.
"""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.core.codec import decode as decode
    from locus.core.codec import encode as encode
    from locus.core.data import decode_data as decode_data
    from locus.core.data import encode_data as encode_data
    from locus.core.data import register_value as register_value
    from locus.core.frozen import EMPTY as EMPTY
    from locus.core.frozen import FrozenDict as FrozenDict
    from locus.core.frozen import freeze as freeze
    from locus.core.frozen import thaw as thaw
    from locus.core.patterns import Pattern as Pattern
    from locus.core.protocols import has_all_of as has_all_of

_MODULES = {
    "locus.core.codec": ("decode", "encode"),
    "locus.core.data": ("decode_data", "encode_data", "register_value"),
    "locus.core.frozen": ("EMPTY", "FrozenDict", "freeze", "thaw"),
    "locus.core.patterns": ("Pattern",),
    "locus.core.protocols": ("has_all_of",),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
