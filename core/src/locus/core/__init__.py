"""Values: what a run is made of. No I/O, no async, no hooks, no clock.

The names here are for data: frozen containers, and its JSON form.
"""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.core.codec import decode, encode
    from locus.core.data import decode_data, encode_data, register_value
    from locus.core.frozen import EMPTY, FrozenDict, freeze, thaw
    from locus.core.protocols import has_all_of

__all__ = [
    "EMPTY",
    "FrozenDict",
    "decode",
    "decode_data",
    "encode",
    "encode_data",
    "freeze",
    "has_all_of",
    "register_value",
    "thaw",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.core.codec": ("decode", "encode"),
        "locus.core.data": ("decode_data", "encode_data", "register_value"),
        "locus.core.frozen": ("EMPTY", "FrozenDict", "freeze", "thaw"),
        "locus.core.protocols": ("has_all_of",),
    },
)
