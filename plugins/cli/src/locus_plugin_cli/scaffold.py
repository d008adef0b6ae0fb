"""Writes the project of a new plugin from the templates of this package; it builds, installs and passes its tests."""

from __future__ import annotations

import inspect
import keyword
import re
import shlex
import sys
import tempfile
from collections.abc import Collection, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from attrs import frozen

from locus import Agent
from locus.core.errors import ConfigError
from locus_plugin_cli.distributions import LIBRARIES, install_target

__all__ = ["KINDS", "Kind", "check_name", "try_command", "write_project"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@frozen
class Setting:
    """A setting of a plugin.

    Args:
        name: of the field.
        type: of the field, as it is written.
        default: as it is written.
        note: what it is.
        toml: an example of its value, as the README shows it.
    """

    name: str
    type: str
    default: str
    note: str
    toml: str


@frozen(kw_only=True)
class Kind:
    """What a plugin of one kind has beyond what all have.

    Args:
        files: template -> path in the project.
        hooks: references for the manifest, within the package.
        provides: kind of provision -> reference within the package.
        settings: what is set for it.
        needs: what its package depends on beside the kernel.
    """

    files: dict[str, str]
    hooks: tuple[str, ...] = ()
    provides: tuple[tuple[str, str], ...] = ()
    settings: tuple[Setting, ...] = ()
    needs: tuple[str, ...] = ()


_SERVER = "https://api.example.com/v1"

KINDS: dict[str, Kind] = {
    "hook": Kind(
        files={"hooks.py": "src/$package/hooks.py", "test_hooks.py": "tests/test_${name}_hooks.py"},
        hooks=("hooks:$class_name",),
        settings=(Setting("forbidden", "tuple[str, ...]", "()", "names of tools that are refused.", "[]"),),
    ),
    "tool": Kind(
        files={"tools.py": "src/$package/tools.py", "test_tools.py": "tests/test_${name}_tools.py"},
        hooks=("tools",),
    ),
    "model": Kind(
        files={"model.py": "src/$package/model.py", "test_model.py": "tests/test_${name}_model.py"},
        provides=(("model", "model:make"), ("models", "model:models")),
        settings=(
            Setting("base_url", "str", f'"{_SERVER}"', "the address of the server.", f'"{_SERVER}"'),
            Setting(
                "api_key",
                "Secret | None",
                "None",
                "the key for it; None = ``$variable`` of the environment.",
                '{ env = "$variable" }',
            ),
        ),
        needs=("anyio>=4.9", "locus-wire>=0.1,<0.2"),
    ),
}

_ALWAYS = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "init.py": "src/$package/__init__.py",
    "manifest.py": "src/$package/manifest.py",
    # Named after the plugin: pytest takes the tests of several projects in one call if no two files have one name.
    "test_plugin.py": "tests/test_$name.py",
}


def check_name(name: str, installed: Collection[str]) -> None:
    """Refuse a name that a plugin cannot have.

    Args:
        name: of the plugin.
        installed: names that are taken.

    Raises:
        ConfigError: with the reason, and a name that would do where one is near.
    """
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        hint = f", such as {better!r}" if _NAME.fullmatch(better) else ""
        raise ConfigError(f"{name!r} is no name for a plugin; use lower-case letters, digits and '_'{hint}")
    if keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a word of Python, so Agent({name}=True) cannot be written; choose another name")
    if name in inspect.signature(Agent).parameters:
        raise ConfigError(f"{name!r} is an option of Agent, so Agent({name}=...) means that; choose another name")
    if name in installed:
        raise ConfigError(f"a plugin {name!r} is installed already; choose another name, or uninstall it first")


def write_project(name: str, kinds: Sequence[str], target: Path) -> list[Path]:
    """Write the project, all of it or nothing.

    Args:
        name: of the plugin, see `check_name`.
        kinds: keys of `KINDS`.
        target: the folder to be made; it may exist if it is empty.

    Returns:
        The files, relative to the folder.

    Raises:
        ConfigError: the folder holds something, or cannot be written.
    """
    rendered = _rendered(name, [KINDS[kind] for kind in dict.fromkeys(kinds)])
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise ConfigError(f"{target} exists, and nothing is overwritten; give another --dir")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            fresh = Path(folder) / target.name
            for path, text in rendered.items():
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                (fresh / path).write_text(text, encoding="utf-8", newline="\n")
            if target.exists():
                target.rmdir()
            fresh.rename(target)
    except OSError as e:
        raise ConfigError(f"{target} cannot be written: {e.strerror or e}") from e
    return sorted(rendered)


def try_command(kinds: Sequence[str], target: Path) -> str:
    """The command that installs the project and its tests' requirements into this environment, and runs the tests.

    Args:
        kinds: keys of `KINDS`.
        target: the folder of the project.
    """
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    # Environments that uv makes have no pip.
    run = shlex.quote(str(python))
    install = f"{run} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {run}"
    needs = [need for kind in dict.fromkeys(kinds) for need in KINDS[kind].needs]
    ours = ["testkit", *(name for name in sorted(LIBRARIES) if any(n.startswith(f"locus-{name}>") for n in needs))]
    project = shlex.quote(str(target))
    return f"{install} {' '.join(map(install_target, ours))} -e {project} pytest && {run} -m pytest {project}"


def _rendered(name: str, kinds: list[Kind]) -> dict[Path, str]:
    """The files of the project, by path."""
    values = _values(name, kinds)
    chosen = dict(_ALWAYS)
    for kind in kinds:
        chosen |= kind.files
        if kind.settings:
            chosen["settings.py"] = "src/$package/settings.py"
    texts = {template: _template(template).substitute(values) for template in chosen}
    made = {Path(Template(path).substitute(values)): texts[template] for template, path in chosen.items()}
    made[Path(f"src/{values['package']}/py.typed")] = ""
    return made


def _template(name: str) -> Template:
    return Template((files("locus_plugin_cli") / "template" / f"{name}.tmpl").read_text(encoding="utf-8"))


def _values(name: str, kinds: list[Kind]) -> dict[str, str]:
    package = f"locus_plugin_{name}"
    names = {
        "name": name,
        "package": package,
        "class_name": "".join(part.title() for part in name.split("_")),
        "variable": f"{name.upper()}_API_KEY",
    }
    settings = [setting for kind in kinds for setting in kind.settings]
    needs = ["locus-core>=0.1,<0.2", *(each for kind in kinds for each in kind.needs)]
    hooks = [f'"{package}.{Template(hook).substitute(names)}"' for kind in kinds for hook in kind.hooks]
    provides = [f'"{kind}": "{package}.{reference}"' for each in kinds for kind, reference in each.provides]
    parts = []
    if settings:
        parts.append(f'    settings="{package}.settings:{names["class_name"]}Settings",')
    if hooks:
        parts.append(f"    hooks=({', '.join(hooks)}{',' if len(hooks) == 1 else ''}),")
    if provides:
        parts.append(f"    provides={{{', '.join(provides)}}},")
    return {
        **names,
        "distribution": f"locus-plugin-{name.replace('_', '-')}",
        "summary": f"The {name} plugin for Locus.",
        "parts": "\n".join(parts),
        "dependencies": ", ".join(f'"{each}"' for each in sorted(needs)),
        "settings_imports": "\nfrom locus.plugins import Secret\n" if any("Secret" in s.type for s in settings) else "",
        "settings_doc": "\n".join(f"        {s.name}: {Template(s.note).substitute(names)}" for s in settings),
        "settings_fields": "\n".join(f"    {s.name}: {s.type} = {s.default}" for s in settings),
        "settings_toml": Template(_toml(name, settings)).substitute(names),
    }


def _toml(name: str, settings: list[Setting]) -> str:
    """The table of settings, as the README shows it."""
    if not settings:
        return ""
    lines = [f"[plugins.{name}]", *(f"{setting.name} = {setting.toml}" for setting in settings)]
    return "\n" + "".join(f"    {line}\n" for line in lines)
