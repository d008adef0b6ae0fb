"""The programs of `contrib/examples`, run by their command line, in this process and on a scripted model.

``--model script:NAME`` names a model that a test has scripted; a plugin provides it as plugins provide any other.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from locus.plugin import Plugin
from locus_testkit import ScriptedModel

EXAMPLES = Path(__file__).resolve().parents[2] / "contrib" / "examples"

plugin = Plugin(
    name="script",
    api=(1, 0),
    summary="Models that tests have scripted.",
    provides={"model": "tests.together.programs:make"},
)

#: By their names.
_MODELS: dict[str, ScriptedModel] = {}


def make(name: str, settings: Any) -> ScriptedModel:
    """What the plugin provides."""
    return _MODELS[name]


class Programs:
    """Runs the examples of one test, in its folder."""

    def run(self, name: str, *arguments: object, script: ScriptedModel | None = None) -> int:
        """Run ``python contrib/examples/NAME ARGUMENTS``, and return its exit status.

        Args:
            name: of the file.
            arguments: of the command line; the model is added when there is a script.
            script: the model; all of its turns must be used.
        """
        given = [str(each) for each in arguments]
        if script is not None:
            _MODELS["it"] = script
            given += ["--model", "script:it"]
        before = sys.argv
        sys.argv = [str(EXAMPLES / name), *given]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            status = 0
        except SystemExit as error:
            if isinstance(error.code, str):
                sys.stderr.write(error.code)
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        finally:
            sys.argv = before
            _MODELS.clear()
        if script is not None:
            assert script.overrun is None, script.overrun
            assert not script.remaining, f"{script.remaining} turn(s) of the script were not used"
        return status
