"""The functions that MkDocs calls while it builds the manual: pages and tables made from the code, and links
to documents.

A page asks for a table with a comment such as <!-- generated: exit-codes -->. Documents that stand beside
their code (rdc/**/*.md) become pages below formats/.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.manual import (
    events,
    options,
    reference,
    rsync_options,
    rsync_scenarios,
    scan_report,
    wire_figures,
)
from scripts.manual.notes import TOP

ALIASES = {
    "rdc/ARCHITECTURE.md": "contributing/architecture.md",
    "rdc/GLOSSARY.md": "contributing/glossary.md",
    "SECURITY.md": "explanation/security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "README.md": "index.md",
}
"""Documents of the repository that have a page of their own name in the manual."""

TABLES: dict[str, Callable[[str], str]] = {
    "exit-codes": lambda _: reference.exit_code_table(),
    "settings": lambda _: reference.settings_table(),
    "settings-example": lambda _: reference.settings_example(),
    "filters": lambda _: reference.filter_table(),
    "dependencies": lambda _: reference.dependency_table(),
    "events": events.events_section,
    "verbs": lambda _: options.verb_table(),
    "refused": lambda _: options.refused_table(),
    "rsync-options": lambda _: rsync_options.option_table(),
    "rsync-scenarios": lambda _: rsync_scenarios.scenario_table(),
    "section": lambda words: reference.document_section(*words.split(" ", 1)),
    "documents": lambda _: document_table(),
    "api": reference.api,
    "scan-report": lambda _: scan_report.scan_report(),
    "wire": lambda _: wire_figures.wire_table(),
}

FIGURES = "fixtures/figures"
"""The directory in which scripts/figures draws measurements. They are shown beside those of docs/pictures."""

GENERATED = re.compile(r"^<!-- generated: ([\w-]+)(?: (.*?))? -->$", re.MULTILINE)
IGNORED = re.compile(r"^<!-- (?:setup|run).*?-->\n", re.MULTILINE | re.DOTALL)


def documents() -> dict[str, str]:
    """Return the documents of the repository by path, each with its page in the manual."""
    found = dict(ALIASES)
    for path in sorted((TOP / "rdc").rglob("*.md")):
        name = path.relative_to(TOP).as_posix()
        found.setdefault(name, "formats/" + name.removeprefix("rdc/"))
    return found


def document_table() -> str:
    """All documents that stand beside their code."""
    rows = []
    for name, page in documents().items():
        if name.startswith("rdc/"):
            title = (TOP / name).read_text().split("\n", 1)[0].lstrip("# ")
            rows.append(f"| [{title}](../{page}) | {name} |")
    return "\n".join(["| document | file |", "|---|---|", *rows])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file below docs/ has."""
    for verb, page in options.PAGES.items():
        files.append(File.generated(config, page, content=options.verb_page(verb)))
    for name, page in documents().items():
        if files.get_file_from_path(page) is None:
            shown = page.startswith("formats/") or page == "changelog.md"
            level = InclusionLevel.NOT_IN_NAV if shown else InclusionLevel.INCLUDED
            files.append(File.generated(config, page, content=_linked(name), inclusion=level))
    for figure in sorted((TOP / FIGURES).iterdir()):
        files.append(File.generated(config, f"pictures/{figure.name}", abs_src_path=str(figure)))
    return files


def _linked(name: str) -> str:
    """Return a document of the repository, with the targets of its links as pages of the manual."""
    text, pages = (TOP / name).read_text(), documents()
    here = posixpath.dirname(pages[name])

    def target(found: re.Match[str]) -> str:
        path, _, fragment = found[1].partition("#")
        known = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        page = known.removeprefix("docs/") if known.startswith("docs/") else pages.get(known)
        if page is None or "://" in path:
            return found[0]
        return f"]({posixpath.relpath(page, here or '.')}{'#' + fragment if fragment else ''})"

    return re.sub(r"\]\(([^)#\s]+(?:#[^)]*)?)\)", target, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in the tables, and make links of the names of documents."""
    text = re.sub(rf"((?:\.\./)*)\.\./{FIGURES}/", r"\1pictures/", IGNORED.sub("", markdown))
    text = GENERATED.sub(lambda found: TABLES[found[1]](found[2] or ""), text)
    return _named_documents(text, page.file.src_uri)


def _named_documents(text: str, page: str) -> str:
    """Links `rdc/daemon/DAEMON.md` and other names of documents, outside of code blocks and other links."""
    pages = documents()
    parts = re.split(r"(^ *```.*?^ *```$|\[[^\]]*\]\([^)]*\))", text, flags=re.MULTILINE | re.DOTALL)

    def linked(found: re.Match[str]) -> str:
        target = pages.get(found[1])
        if target is None or target == page:
            return found[0]
        return f"[`{found[1]}`]({posixpath.relpath(target, posixpath.dirname(page) or '.')})"

    parts[::2] = [re.sub(r"`([\w/]+\.md)`", linked, part) for part in parts[::2]]
    return "".join(parts)
