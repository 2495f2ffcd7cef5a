"""Words a sentence, page by page: scripts/docs --words. Code, tables of names and headings do not count."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from rdc.cli.verb import VERBS
from scripts.manual.events import EVENTS, events_section
from scripts.manual.notes import TOP
from scripts.manual.options import PAGES, verb_page
from scripts.manual.transcripts import pages

MOST_WORDS = 25
"""Words a sentence, on average over a page."""

MOST_CELL_WORDS = 40
"""Words in one cell of a table. More of them belong into a paragraph."""


class Readability(NamedTuple):
    sentences: int
    words: float
    """Words a sentence, on average."""
    longest: int
    """Words of the longest sentence."""
    cell: int
    """Words of the longest cell of a table."""


def sentences_of(page: str) -> list[str]:
    """Return the sentences of paragraphs, list items and cells of tables."""
    text = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4,}(?![*-] ).*|#+ .*|\|[-:| ]+\||!\[.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`([^`]*)`", _one_word, text)
    text = re.sub(r"^\s*(?:[*-]|\d+\.|:) +|^!!! .*$", "\n\n", text, flags=re.MULTILINE)
    pieces = re.split(r"\n\s*\n|\|\n?|(?<=[.!?])\s+", text)
    return [
        piece for piece in (re.sub(r"\s+", " ", piece).strip() for piece in pieces) if re.search(r"\w", piece)
    ]


def _one_word(found: re.Match[str]) -> str:
    return "code" if len(found[1]) < 60 else found[1]


def measured(page: str) -> Readability:
    """Return the figures of one page. Cells of fewer than four words are names, not sentences."""
    counts = [len(sentence.split()) for sentence in sentences_of(page)]
    sentences = [count for count in counts if count > 3] or [0]
    cells = [
        len(cell.split())
        for row in re.findall(r"^\|(.*)\|$", page, re.MULTILINE)
        for cell in re.split(r"(?<!\\)\|", row)
    ]
    return Readability(len(sentences), sum(sentences) / len(sentences), max(sentences), max(cells, default=0))


def all_pages() -> dict[str, str]:
    """Return the text of every page, by name: those that people wrote, and those that are made from the
    code."""
    written = [*pages(), TOP / "CHANGELOG.md", TOP / "SECURITY.md"]
    found = {path.relative_to(TOP).as_posix(): path.read_text() for path in written}
    found |= {PAGES[verb]: verb_page(verb) for verb in VERBS}
    return found | {f"events of {verb}": events_section(verb) for verb in EVENTS}


def main() -> None:
    """Print the figures of all pages, and fail where one is past its bound."""
    past = 0
    print(f"{'page':<44}{'sentences':>10}{'words':>8}{'longest':>9}{'cell':>6}")
    for name, text in all_pages().items():
        found = measured(text)
        past += found.words > MOST_WORDS or found.cell > MOST_CELL_WORDS
        print(f"{name:<44}{found.sentences:>10}{found.words:>8.1f}{found.longest:>9}{found.cell:>6}")
    sys.exit(1 if past else 0)


if __name__ == "__main__":
    main()
