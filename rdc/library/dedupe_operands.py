"""Opens the PATHs of `rdc dedupe` as confined trees that do not overlap."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from rdc.duplicates.group import Tree, is_below
from rdc.errors import RdcError
from rdc.files.base.os_errors import failure, refused
from rdc.files.root.root import Root
from rdc.records import dataclass

__all__ = ["Operand", "Operands", "open_operands"]


@dataclass(frozen=True, slots=True)
class Operand:
    """One PATH, opened."""

    tree: Tree
    only: bytes | None
    """The name of a single file in the tree's top directory. None means the whole tree."""
    label: bytes
    """The PATH as typed."""
    absolute: bytes
    """The absolute PATH, with symlinks unresolved."""


@dataclass(frozen=True, slots=True)
class Operands:
    """All opened PATHs, and the directories of --keep-in."""

    all: tuple[Operand, ...]
    """Those that lie inside no other."""
    keep: tuple[bytes, ...]
    """The real paths of --keep-in."""
    searched: tuple[bytes, ...] = ()
    """All PATHs as typed and in their order, then the directories of --keep-in. A search in this order finds
    files in the order in which `rdc dupes` lists them."""

    @property
    def trees(self) -> list[Tree]:
        """The trees of all PATHs, in the order of `all`."""
        return [operand.tree for operand in self.all]

    def close(self) -> None:
        """Closes the roots of all trees."""
        for operand in self.all:
            operand.tree.root.close()


def open_operands(paths: Sequence[bytes], keep: Sequence[bytes]) -> Operands:
    """Opens `paths` and `keep`, without those that lie inside another. Raises RdcError.

    Symlinks in the typed paths are followed. Symlinks below them are not.
    """
    real_keep = tuple(os.path.realpath(path) for path in keep)
    # In order of length, so that an outer path precedes the paths inside it.
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
    return Operands(tuple(operands), real_keep, (*paths, *keep))


def _open(path: bytes, real: bytes) -> Operand:
    absolute = os.path.abspath(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _missing(error, path) from error
    if not stat.S_ISREG(mode):
        return Operand(Tree(Root.open(path), real), None, path, absolute)
    top, name = os.path.split(real)
    # Keep the typed directory as the label if it holds the same file.
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
