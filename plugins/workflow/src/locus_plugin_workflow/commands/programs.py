"""``shop:review``: from a name on the command line to the workflow that it is."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from locus.core.errors import InputError, LocusError, closest
from locus_plugin_workflow.builder import Workflow
from locus_plugin_workflow.definition import WorkflowDef

__all__ = ["load_workflow"]


def load_workflow(text: str) -> WorkflowDef:
    """The workflow that ``MODULE:NAME`` or ``FILE.py:NAME`` names; one that is not built is.

    Raises:
        InputError: the program cannot be loaded, or has no such workflow.
        InvalidWorkflow: it cannot be built.
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise InputError(f"expected MODULE:NAME, such as shop:review, or FILE.py:NAME, got {text!r}")
    try:
        names = vars(_run_file(Path(place)) if place.endswith(".py") else _find_module(place))
    except LocusError:
        raise
    except Exception as e:
        raise InputError(f"{place} cannot be loaded: {type(e).__name__}: {e}") from e
    found = names.get(name)
    if isinstance(found, Workflow):
        return found.build()
    if isinstance(found, WorkflowDef):
        return found
    known = sorted(key for key, value in names.items() if isinstance(value, Workflow | WorkflowDef))
    near = closest(name, known)
    hint = f"did you mean {place}:{near}?" if near else f"its workflows are: {', '.join(known) or 'none'}"
    raise InputError(f"{place} has no workflow {name!r}; {hint}")


def _run_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path.resolve(strict=True))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # for annotations, which are looked up there
    spec.loader.exec_module(module)
    return module


def _find_module(name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        # A script's path begins at its own folder. At the end: nothing here may replace what is installed.
        sys.path.append(str(Path.cwd()))
    return import_module(name)
