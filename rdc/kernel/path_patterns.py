"""Paths matched against many wildcard patterns at once."""

from __future__ import annotations

from rdc.kernel.patterns._patterns import (
    ABSOLUTE,
    ANYWHERE,
    COMPONENTS,
    DIRECTORY,
    INSIDE,
    LITERAL,
    NEGATED,
    TAIL,
    PatternSet,
)

__all__ = [
    "ABSOLUTE",
    "ANYWHERE",
    "COMPONENTS",
    "DIRECTORY",
    "INSIDE",
    "LITERAL",
    "NEGATED",
    "PatternSet",
    "TAIL",
]
