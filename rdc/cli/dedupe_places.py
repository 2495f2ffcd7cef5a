"""The PATHs of `rdc dedupe` as confined trees, each file in one of them only."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from rdc.errors import RdcError
from rdc.files.confined import Root
from rdc.files.failure import failure, refused
from rdc.instances.tree import Tree, is_below
from rdc.records import dataclass

__all__ = ["Operand", "Operands", "open_operands"]


@dataclass(frozen=True, slots=True)
class Operand:
    tree: Tree
    only: bytes | None
    """The one file of the tree's top directory that was named; None: all of the tree."""
    label: bytes
    """As typed."""
    absolute: bytes
    """As typed, made absolute without looking at links."""


@dataclass(frozen=True, slots=True)
class Operands:
    all: tuple[Operand, ...]
    keep: tuple[bytes, ...]
    """Real paths."""

    @property
    def trees(self) -> list[Tree]:
        return [operand.tree for operand in self.all]

    def close(self) -> None:
        for operand in self.all:
            operand.tree.root.close()


def open_operands(paths: Sequence[bytes], keep: Sequence[bytes]) -> Operands:
    """Open `paths` and `keep`; one that lies within another is left out. Raises RdcError.

    Links in them are followed, since whoever typed them named what they lead to; none below is.
    """
    kept = tuple(os.path.realpath(path) for path in keep)
    # Shorter first: what lies within another comes after it.
    given = sorted(
        {os.path.realpath(path): path for path in (*keep, *paths)}.items(), key=lambda item: len(item[0])
    )
    operands: list[Operand] = []
    tops: list[bytes] = []
    try:
        for real, path in given:
            if any(is_below(real, top) for top in tops):
                continue
            operands.append(_open(path, real))
            tops.append(real)
    except BaseException:
        Operands(tuple(operands), ()).close()
        raise
    return Operands(tuple(operands), kept)


def _open(path: bytes, real: bytes) -> Operand:
    absolute = os.path.abspath(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _missing(error, path) from error
    if not stat.S_ISREG(mode):
        return Operand(Tree(Root.open(path), real), None, path, absolute)
    top, name = os.path.split(real)
    # As typed, where that leads to the same place.
    typed, typed_name = os.path.split(path)
    label = (typed or b".") if typed_name == name and not os.path.islink(path) else top
    return Operand(Tree(Root.open(top, label=label), top), name, path, absolute)


def _missing(error: OSError, path: bytes) -> RdcError:
    if isinstance(error, FileNotFoundError):
        return refused(
            path,
            path,
            "look at it",
            expected="a directory or file",
            found="nothing",
            advice="check the spelling and run again",
        )
    return failure(error, path, path, "look at it")
