"""The parts behind -H: the table of links, one link, and messages of peers that lie about links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.files.names.entry_names import Linked, link_file
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.limits import FILES_PER_MESSAGE
from rdc.model.entries import Kind, Metadata, PackedInodes
from rdc.model.preserved import EVERYTHING
from rdc.protocol.messages import Describe, HardLinks, Start, encode
from rdc.protocol.sequence import TreeTotals
from rdc.protocol.wire.codec import Illegal
from rdc.tree.hard_links import LinkTable
from tests.support.trees.hard_links import link
from tests.support.trees.trees import Directory, litter, read_tree, tree, write_tree

# The table


def inodes(rows: list[tuple[int, int, int]]) -> PackedInodes:
    """Of (device, inode, links)."""
    empty = bytes(8 * len(rows))
    return PackedInodes(
        b"".join(device.to_bytes(8, "little") for device, _, _ in rows),
        b"".join(inode.to_bytes(8, "little") for _, inode, _ in rows),
        b"".join(links.to_bytes(4, "little") for _, _, links in rows),
        empty,
        empty,
    )


@given(st.lists(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 6)), max_size=6), max_size=6), st.data())
def test_the_table_has_every_further_name(
    directories: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    every = [found for directory in directories for found in directory]
    outside = {found: data.draw(st.integers(0, 2)) for found in set(every)}
    table, row = LinkTable(), 0
    for directory in directories:
        told = inodes([(*found, every.count(found) + outside[found]) for found in directory])
        table.add(row, bytes([Kind.FILE]) * len(directory), told)
        row += len(directory)
    expected = [(at, every.index(found)) for at, found in enumerate(every) if every.index(found) < at]
    assert list(table) == expected
    assert [table.files[at] for at in table.between(2, 5)] == [at for at, _ in expected if 2 <= at < 5]
    for first in range(row):
        assert list(table.names(first)) == [at for at, found in expected if found == first]
    if not any(outside.values()):
        # Who has met all names of a file forgets it.
        assert not any(table._seen.values())


def test_directories_and_links_have_no_further_names() -> None:
    table = LinkTable()
    table.add(0, bytes([Kind.DIRECTORY, Kind.SYMLINK, Kind.DIRECTORY, Kind.SYMLINK]), inodes([(1, 2, 2)] * 4))
    assert not table


# One link


@pytest.fixture
def root(tmp_path: Path) -> Root:
    write_tree(tmp_path / "r", tree({"a": b"one", "b": b"two", "d/e": Directory(), "full/x": b"1"}))
    return Root.open(os.fsencode(tmp_path / "r"))


def test_link_file(root: Root, tmp_path: Path) -> None:
    top = tmp_path / "r"
    found = root.identity(b"a")
    for name in (b"b", b"d/new", b"d/e", b"b"):
        assert link_file(root, b"a", name, found) is Linked.DONE
        assert os.path.samefile(os.path.join(os.fsencode(top), name), top / "a")
    assert link_file(root, b"full/x", b"b", found) is Linked.CHANGED
    assert (top / "b").read_bytes() == b"one"
    with pytest.raises(Exception, match="full"):
        link_file(root, b"a", b"full", found)
    assert litter(read_tree(top)) == []
    assert {path for path in read_tree(top) if b".rdc" in path} == set()


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EMLINK, errno.EPERM])
def test_what_cannot_be_linked(
    code: int, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object, **fds: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    assert link_file(root, b"a", b"b", root.identity(b"a")) is Linked.IMPOSSIBLE
    assert (tmp_path / "r/b").read_bytes() == b"two"


# Peers that lie


def test_links_are_of_entries_to_come_and_bounded_by_those_that_came() -> None:
    census = TreeTotals()
    early = HardLinks((1,), (0,))
    with pytest.raises(Illegal):
        census.link(early)
    census.describe(Describe(True, EVERYTHING))
    with pytest.raises(Illegal):
        census.link(early)
    census.start(Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0)))
    census.link(early)
    for again in (early, HardLinks((0 + 1, 5), (0, 0))):
        with pytest.raises(Illegal):
            census.link(again)
    with pytest.raises(Illegal):
        census.link(HardLinks(tuple(range(2, 2 + FILES_PER_MESSAGE)), (0,) * FILES_PER_MESSAGE))


@pytest.mark.parametrize("lie", [HardLinks((3,), (3,)), HardLinks((3,), (4,)), HardLinks((3, 4), (0,))])
def test_the_first_name_comes_first(lie: HardLinks) -> None:
    with pytest.raises(ValueError, match="firsts"):
        encode(lie)


@pytest.mark.parametrize("meddles", [False, True], ids=["nobody else", "somebody else"])
def test_only_names_lost_here_explain_another_ctime(meddles: bool, root: Root, tmp_path: Path) -> None:
    """Who writes to the file between two of its names being replaced keeps the second."""
    top = tmp_path / "r"
    link(top, "a", "b")
    expected = {name: root.identity(name) for name in (b"a", b"b")}
    errors: list[FileError] = []
    group_ = CommitGroup(root, fsync=False, on_commit=lambda _: None, on_error=errors.append)
    for name, identity in expected.items():
        replacement = Replacement(root, name)
        replacement.write(b"new " + name)
        group_.add(replacement, name, Metadata(0o644, 0, os.geteuid(), os.getegid()), False, identity)
        group_.flush()
        if meddles and name == b"a":
            times = (top / "b").stat()
            (top / "b").write_bytes(b"two")
            os.utime(top / "b", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (top / "a").read_bytes() == b"new a"
    assert len(errors) == meddles
    if not meddles:
        assert (top / "b").read_bytes() == b"new b"
