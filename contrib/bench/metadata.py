"""What it costs that the metadata of a run grows: 400 steps, each of which appends 2 kB to one entry of it.

    python contrib/bench/metadata.py [rounds]

CPU time of a step, from the state to the row of a `SqliteStore`, and the bytes that are written: the least of the
rounds. A journal that wrote the whole entry each time would write 160 MB.
"""

from __future__ import annotations

import random
import string
import sys
import tempfile
import time
from pathlib import Path

import anyio

from locus.core.delta import apply, delta
from locus.core.journal import Transition
from locus.core.state import AgentState
from locus_plugin_sqlite import SqliteStore

STEPS, LENGTH = 400, 2_000
WORDS = ["".join(random.Random(n).choices(string.ascii_lowercase, k=3 + n % 7)) for n in range(2_000)]  # noqa: S311


def texts(seed: int) -> list[str]:
    """Texts of words, as a model writes them: they compress to a third."""
    chosen = random.Random(seed)  # noqa: S311
    return [" ".join(chosen.choices(WORDS, k=LENGTH))[:LENGTH] for _ in range(STEPS)]


async def measured(path: Path, seed: int) -> tuple[float, int]:
    """Microseconds of CPU a step, and bytes of the file when it is closed."""
    added = texts(seed)
    async with SqliteStore(path, sync="normal") as store:
        claim = await store.claim("t", "bench")
        state = AgentState(run_id="run", agent_id="bench").with_metadata("notes", ())
        began = time.process_time()
        for text in added:
            grown = state.with_metadata("notes", (*state.metadata["notes"], text))
            moved = Transition(run_id="run", node="think", next_node="execute", delta=delta(state, grown))
            await store.append(claim, [moved])
            state = grown
        taken = time.process_time() - began
        await store.release(claim)
        read = AgentState(run_id="run", agent_id="bench").with_metadata("notes", ())
        for entry in await store.read("t"):
            assert isinstance(entry.body, Transition)
            read = apply(read, entry.body.delta)
        assert read.metadata["notes"] == tuple(added)
    return taken / STEPS * 1e6, sum(each.stat().st_size for each in path.parent.iterdir())


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    found = []
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found.append(anyio.run(measured, Path(folder) / "runs.db", seed))
    print(f"{min(us for us, _ in found):6.0f} us a step, goal 370")
    print(f"{min(size for _, size in found) / 1e6:6.2f} MB on disk, goal 3.2 (the texts: {STEPS * LENGTH / 1e6:.2f})")


if __name__ == "__main__":
    main()
