"""Words that were replaced by standard terms do not come back: rdc/GLOSSARY.md has the terms.

Each use of an old word in an identifier of rdc/ counts: see tests/project/source_measures.py.
"""

from __future__ import annotations

import re

from tests.project.source_measures import (
    WIRE_NAMES,
    WORD_OF,
    identifiers_of,
    old_words,
    source_files,
    words_of,
)
from tests.support.project_paths import TOP

GLOSSARY = TOP / "rdc" / "GLOSSARY.md"
MOST_WORDS = 25
"""In a definition, without its source."""


def test_no_old_word_is_left() -> None:
    assert not old_words(), "use the standard terms"


def test_wire_names_that_are_excepted_exist() -> None:
    present = {name for path in source_files("rdc", endings=(".py",)) for name in identifiers_of(path)}
    assert present >= WIRE_NAMES


def test_identifiers_are_split_into_words() -> None:
    assert words_of("_FileGaps") == ["file", "gaps"]
    assert words_of("KEPT_BYTES2") == ["kept", "bytes"]
    assert words_of("rdcTLSName") == ["rdc", "tls", "name"]
    assert words_of("platform") == ["platform"]


def entries() -> dict[str, list[str]]:
    """The rows of the glossary's tables: term, meaning, source."""
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| **")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {cell[0].strip("* "): cell[1:] for cell in cells}


def test_the_glossary_gives_each_term_one_meaning_and_its_source() -> None:
    found = entries()
    assert len(found) == len(re.findall(r"^\| \*\*", GLOSSARY.read_text(), re.MULTILINE)), "a term twice"
    assert list(found) == sorted(found, key=str.lower)
    for term, (meaning, source) in found.items():
        assert meaning and source, term
        sentences = re.split(r"(?<=[.!?]) ", meaning)
        assert all(len(sentence.split()) <= MOST_WORDS for sentence in sentences), term


def test_the_glossary_defines_no_old_word() -> None:
    for term in entries():
        assert not {word for word in words_of(term) if word in WORD_OF}, term


def test_paths_in_the_glossary_exist() -> None:
    for path in re.findall(r"`((?:rdc|tests|scripts)/[\w./-]+)`", GLOSSARY.read_text()):
        assert (TOP / path).exists(), path
