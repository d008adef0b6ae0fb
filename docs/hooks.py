"""What the build of the site adds to mkdocs: generated pages, links into the checkout, and checks of what was built.

``python -m mkdocs build -f docs/mkdocs.yml`` at the top of a checkout; `tox -e docs` does it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from docs import diagram, reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from locus.hooks.specs import HOOKS

ROOT = Path(__file__).resolve().parent.parent

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s:]+)\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^( *)(```+)[^\n]*\n.*?^\1\2 *$", re.DOTALL | re.MULTILINE)
#: What a browser would fetch: the text of a link to another site is not fetched.
_FETCHED = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
#: Documents of the checkout that are pages of the site as they are.
_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def documents() -> dict[str, str]:
    """The documents of the checkout by their path, and the page that each is."""
    found = [ROOT / name for name in _TOP]
    found += [ROOT / "core" / "README.md", ROOT / "contrib" / "bench" / "RESULTS.md"]
    found += sorted(
        path.parent / "README.md"
        for folder in ("plugins", "contrib")
        for path in (ROOT / folder).glob("*/pyproject.toml")
    )
    paths = [path.relative_to(ROOT).as_posix() for path in found if path.is_file()]
    return {path: f"checkout/{path.removesuffix('.md').replace('/', '-').lower()}.md" for path in paths}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation."""
    modules = {uri: uri.removeprefix("reference/").removesuffix(".md") for uri in reference.pages()}
    pages = [
        uri if name in ("index", "hooks", "events", "errors", "settings", "commands") else {name: uri}
        for uri, name in modules.items()
    ]
    readmes = [{path.removesuffix("/README.md"): page} for path, page in documents().items()]
    config.nav = [*(config.nav or []), {"Reference": pages}, {"In the checkout": readmes}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the documents of the checkout."""
    for uri, text in reference.pages().items():
        files.append(File.generated(config, uri, content=text))
    for path, uri in documents().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=text))
        for _, name in _PICTURE.findall(text):
            picture = (ROOT / path).parent / name
            files.append(File.generated(config, _picture(picture), content=picture.read_bytes()))
    return files


def _picture(path: Path) -> str:
    """Where a picture of the checkout is in the site."""
    return f"checkout/pictures/{path.resolve().relative_to(ROOT).as_posix().replace('/', '-')}"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the diagram, drop the comments for tests, and turn links into the checkout into links to its pages."""
    known = documents()
    origin = {uri: path for path, uri in known.items()}.get(page.file.src_uri, f"docs/pages/{page.file.src_uri}")
    markdown = markdown.replace("<!-- diagram: loop -->", diagram.loop())
    pieces, at = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_with_links(_COMMENT.sub("", markdown[at : fence.start()]), page, origin, known), fence[0]]
        at = fence.end()
    return "".join([*pieces, _with_links(_COMMENT.sub("", markdown[at:]), page, origin, known)])


def _with_links(text: str, page: Page, origin: str, known: dict[str, str]) -> str:
    def replaced(link: re.Match[str]) -> str:
        target, _, anchor = link[2].partition("#")
        if not target or ":" in target:
            return link[0]
        path = os.path.normpath(Path(origin).parent / target)
        if origin.startswith("docs/") and (path.startswith("docs/pages/") or "/reference/" in origin):
            return link[0]  # mkdocs checks these
        if (ROOT / path).is_dir() and f"{path}/README.md" in known:
            path = f"{path}/README.md"
        there = path.removeprefix("docs/pages/") if path.startswith("docs/pages/") else known.get(path)
        if there is None:
            if not (ROOT / path).exists():
                raise PluginError(f"{origin}: {link[0]} leads nowhere")
            return link[1] if link[1].startswith("`") else f"{link[1]} (`{path}`)"
        there = os.path.relpath(there, Path(page.file.src_uri).parent)
        return f"[{link[1]}]({there}{'#' if anchor else ''}{anchor})"

    def pictured(link: re.Match[str]) -> str:
        there = os.path.relpath(_picture((ROOT / origin).parent / link[2]), Path(page.file.src_uri).parent)
        return f"![{link[1]}]({there})"

    if origin in known:
        text = _PICTURE.sub(pictured, text)
    return _LINK.sub(replaced, text)


def on_post_build(config: MkDocsConfig) -> None:
    """Check that what was promised is in the pages, and that no page fetches anything from elsewhere."""
    built = {path: path.read_text(encoding="utf-8") for path in Path(config.site_dir).rglob("*.html")}
    said = "\n".join(text for path, text in built.items() if path.parent.name == "reference")
    ids = set(re.findall(r'\bid="([^"]+)"', said))
    missing = sorted({*reference.names(), *HOOKS} - ids)
    fetched = {str(path): found for path, text in built.items() if (found := _FETCHED.findall(text))}
    if missing:
        raise PluginError(f"not in the reference: {', '.join(missing)}")
    if fetched:
        raise PluginError(f"pages that fetch something: {fetched}")


__all__: list[Any] = ["documents", "on_config", "on_files", "on_page_markdown", "on_post_build"]
