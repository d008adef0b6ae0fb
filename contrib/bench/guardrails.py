"""What the default guardrails find of labelled secrets and personal data, and which harmless lines they touch.

`python contrib/bench/guardrails.py` needs the plugin and `detect-secrets`, for a column of its own. A secret is found
when all of it would be cut out; by detect-secrets when it reports anything in the line.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

from locus_plugin_guardrails import DEFAULT_RULES
from locus_plugin_guardrails.scanner import Scanner

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins" / "guardrails" / "tests"))
from corpus import Line, read

_SCANNER = Scanner(DEFAULT_RULES)


def by_ours(line: Line) -> bool:
    """Whether all that is marked would be cut out; of a harmless line, whether anything would."""
    regions = _SCANNER.regions(_SCANNER.findings(line.text, "prompt"))
    if not line.spans:
        return bool(regions)
    return all(any(r.start <= start and end <= r.end for r in regions) for start, end in line.spans)


def by_detect_secrets(line: Line) -> bool:
    with tempfile.TemporaryDirectory() as folder, default_settings():
        path = Path(folder) / "line.txt"
        path.write_text(f"{line.text}\n", encoding="utf-8")
        return any(True for _ in scan_file(str(path)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missed", metavar="SET", help="also print what is missed, or wrongly found, in this set")
    chosen = parser.parse_args().missed
    finders = {"guardrails": by_ours, "detect-secrets": by_detect_secrets}
    print("| set | kind | lines | " + " | ".join(finders) + " |")
    print("|---|---|---|" + "---|" * len(finders))
    held_out = ("held_out", "held_out_2", "held_out_3", "held_out_4", "held_out_5")
    for name in ("rules", "development", *held_out):
        for kind in ("secret", "pii", "harmless"):
            lines = [line for line in read(name) if line.kind == kind]
            if not lines:
                continue
            cells = []
            for find in finders.values():
                found = sum(map(find, lines))
                cells.append(f"{found} ({100 * found / len(lines):.1f} %)")
            print(f"| {name} | {kind} | {len(lines)} | " + " | ".join(cells) + " |")
            for line in lines if name == chosen else ():
                if by_ours(line) != bool(line.spans):
                    print("   ", line.name, repr(line.text), [line.text[slice(*span)] for span in line.spans])


if __name__ == "__main__":
    main()
