"""Finds the values of a call that someone other than the user may have chosen.

The rules, for a run whose context is tainted:

1. A target that is not literally the user's, or in the user's own records, is tainted.
2. A call with an effect must have at least one target that is: a call without any was chosen by the context as a whole.
3. In what a call sends out, an address (a URL, a domain, an e-mail address) is a target too, wherever it is: it says
   where the reader is sent.
4. Where own records were read as well, a text that is sent out may carry them, encoded or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from locus.core.labels import Leaf, Provenance

__all__ = ["find_reasons"]

#: How much of a value a person is shown, in characters.
_SHOWN = 200

# A scheme, two slashes of either kind or an "@" before a word, four numbers with dots between, or words joined by dots
# (those of Chinese and Japanese, too: https://www.rfc-editor.org/rfc/rfc3490#section-3.1) of which the last has letters
# alone. Each part begins where a word does, and none can be matched in two ways, so that a long text is read once.
_ADDRESS = re.compile(
    r"://|[/\\]{2}\w|@\w|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b\w+(?:-\w+)*[.\u3002\uff0e\uff61](?=[^\W\d_]{2,})"
)


def find_reasons(found: Provenance, targets: Sequence[str] | None, *, is_own_read: bool) -> tuple[str, ...]:
    """The reasons why a call in a tainted context must not simply run, as text for a person; empty if it may.

    Args:
        found: where the arguments come from.
        targets: the parameters that are targets, in place of those that the tool names; empty where it says that it
            has none, None where it does not say.
        is_own_read: whether own records may be in what is sent out.
    """
    names = found.targets if targets is None else targets
    leaves = [leaf for leaf in found.leaves if leaf.parameter in names]
    tainted = [leaf for leaf in leaves if leaf.is_tainted]
    if found.is_egress:
        sent = [leaf for leaf in found.leaves if leaf.is_tainted and isinstance(leaf.value, str)]
        tainted += [leaf for leaf in sent if leaf not in tainted and (is_own_read or _ADDRESS.search(leaf.value))]
    reasons = [*_describe(tainted)]
    is_chosen = any(leaf.origin in ("user", "result") and not leaf.is_tainted for leaf in leaves)
    if not reasons and found.effect != "pure" and not is_chosen and (targets is None or targets):
        read = ", ".join(sorted(found.context.sources))
        reasons.append(f"no argument says that the user wants it, and the model had read {read}")
    return tuple(reasons)


def _describe(leaves: Sequence[Leaf]) -> Iterator[str]:
    for leaf in leaves:
        text = repr(leaf.value)
        yield f"{leaf.path} = {text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'}, {leaf.where}"
