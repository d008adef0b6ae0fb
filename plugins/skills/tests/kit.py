"""What the tests share: folders of skills."""

from __future__ import annotations

from pathlib import Path

__all__ = ["add_skill"]


def add_skill(root: Path, name: str, description: str = "", text: str = "Do it.", **files: str) -> Path:
    """A skill below a folder; gives its own folder."""
    folder = root / name
    folder.mkdir(parents=True)
    front = f"name: {name}\ndescription: {description or f'How to {name}.'}"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n\n{text}\n")
    for path, content in files.items():
        target = folder / path.replace("__", "/").replace("_dot_", ".")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    return folder
