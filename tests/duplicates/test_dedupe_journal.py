"""Journals of hard links: read back as written, undone where they are still true, and not trusted
otherwise."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rdc.duplicates.journal import Change, DirectoryState, Journal, JournalWriter, KeptFile, read_journal
from rdc.errors import FileError
from rdc.model.duplicates import Action
from rdc.model.entries import Metadata
from rdc.model.preserved import packed_time
from tests.support.running.deduping import Run, dedupe, linked, messages, seen, write_duplicates
from tests.support.trees.unprivileged import NOBODY


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Groups of three files, under a/ and b/, that can be linked on any file system."""
    top = tmp_path / "tree"
    write_duplicates(top)
    return top


def link(tree: Path, *words: str | Path) -> Run:
    journal = tree.parent / f"journal{len(list(tree.parent.glob('journal*')))}"
    return dedupe("--hardlink", "--apply", "--journal", journal, *words)


def change(path: bytes, kept: KeptFile, top: bytes = b"/top", **more: Any) -> Change:
    """A hard link, unless `more` says otherwise."""
    fields: dict[str, object] = {"action": Action.LINK, "inode": 1, "metadata": Metadata(0o644, 1, 0, 0)}
    return Change(top=top, path=path, kept=kept, **{**fields, **more})


def test_journals_are_read_as_written(tmp_path: Path) -> None:
    kept = KeptFile(b"/top", b"kept", 1 << 60, 5, b"")
    other = KeptFile(b"/", b"\xff/kept", 7, (1 << 63) - 1, bytes(range(32)))
    far = 1 << 90
    early = packed_time(-far)
    changes = [
        change(b"d/\xff\n", kept, inode=1 << 61, metadata=Metadata(0o4755, early, (1 << 32) - 1, 7)),
        change(b"x", kept, b"/other", atime_ns=far, attributes=((b"user.a", b"\0"), (b"user.b", b""))),
        change(b"y", other, action=Action.DELETE),
        change(b"z", other, action=Action.MOVE, destination_top=b"/in", destination=b"d/z"),
        change(b"z", other, action=Action.SYMLINK, destination=b"../kept"),
    ]
    states = [
        DirectoryState(b"/top", b"", Metadata(0o755, 5, 1, 2), ()),
        DirectoryState(b"/top", b"d", Metadata(0o2700, 6, 1, 2), ((b"user.a", b"x"),)),
    ]
    journal = JournalWriter(os.fsencode(tmp_path / "new" / "journal"))
    assert not (tmp_path / "new").exists()
    journal.write(changes[:2], states[:1])
    journal.write(changes[2:], states[1:], [(b"/in", b"d")])
    journal.close()
    found = read_journal(journal.path)
    assert found == Journal(changes, {(one.top, one.path): one for one in states}, [(b"/in", b"d")])


def signed(text: str) -> bytes:
    from zlib import crc32

    return b"%s %08x\n" % (text.encode(), crc32(text.encode()))


HEAD = signed('{"journal":"rdc dedupe","v":2}')
B64 = {
    name: base64.b64encode(path).decode() for name, path in (("abs", b"/t"), ("rel", b"n"), ("up", b"../n"))
}


def record(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "top": B64["abs"], "path": B64["rel"], "kept": B64["abs"], "inode": 1, "size": 1, "mtime_ns": 1,
        "old": 2, "mode": 0o644, "uid": 0, "gid": 0,
    }  # fmt: skip
    return signed(json.dumps({**fields, **changes}))


NEW = signed('{"journal":"rdc dedupe","v":3}')
TOP = signed(json.dumps({"top": B64["abs"]}))
METADATA = {"mode": 0o644, "uid": 0, "gid": 0, "mtime_ns": 1, "attributes": []}


def keep(**changes: object) -> bytes:
    fields = {"keep": B64["rel"], "in": 0, "inode": 1, "size": 1, "digest": "00" * 32}
    return signed(json.dumps({**fields, **changes}))


def new(action: str, **changes: object) -> bytes:
    fields = {action: B64["rel"], "in": 0, "inode": 1, "atime_ns": 1, **METADATA}
    return signed(json.dumps({**fields, **changes}))


def state(**changes: object) -> bytes:
    return signed(json.dumps({"directory": "", "in": 0, **METADATA, **changes}))


MISFITS = [
    new("link"),
    TOP + new("link"),
    keep() + TOP,
    TOP + keep(**{"in": 1}) + new("link"),
    TOP + keep(**{"in": -1}) + new("link"),
    TOP + keep(keep=B64["up"]) + new("link"),
    TOP + keep(size=-1) + new("link"),
    TOP + keep(digest="00" * 31) + new("link"),
    TOP + keep(digest=7) + new("link"),
    TOP + keep(digest="") + new("delete"),
    TOP + keep() + new("link", to=""),
    TOP + keep() + new("link", path=B64["rel"]),
    TOP + keep() + new("burn"),
    TOP + keep() + new("link", mode=0o10000),
    TOP + keep() + new("link", attributes=["a"]),
    TOP + keep() + new("link", attributes={}),
    TOP + keep() + new("link", atime_ns=1 << 100),
    TOP + keep() + new("link", inode=True),
    TOP + keep() + new("move", to=B64["rel"], to_in=1),
    TOP + keep() + new("move", to=B64["up"], to_in=0),
    TOP + keep() + new("move", to=B64["rel"]),
    TOP + keep() + new("symlink", to=""),
    TOP + state(directory=B64["up"]),
    TOP + state(uid=1 << 32),
    TOP + signed(json.dumps({"made": "", "in": 0})),
    signed(json.dumps({"top": B64["rel"]})),
]


def test_journals_of_version_1_are_read(tmp_path: Path) -> None:
    fields = {"top": B64["abs"], "path": B64["rel"], "kept": B64["abs"], "inode": 1, "size": 2, "mtime_ns": 3}
    path = tmp_path / "journal"
    path.write_bytes(signed('{"journal":"rdc dedupe","v":1}') + signed(json.dumps(fields)))
    kept = KeptFile(b"/", b"t", 1, 2, b"")
    expected = change(b"n", kept, b"/t", inode=0, metadata=Metadata(0, 3, 0, 0))
    assert read_journal(os.fsencode(path)).changes == [expected]


def test_a_journal_that_another_could_have_written_is_none(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(HEAD)
    for mode, owner, found in (
        (0o620, 0, "others may write"),
        (0o602, 0, "others may write"),
        (0o600, NOBODY, f"user {NOBODY}"),
    ):
        path.chmod(mode)
        os.chown(path, owner, -1)
        with pytest.raises(FileError, match=f"only you or root can write, found .*{found}"):
            read_journal(os.fsencode(path))
        assert dedupe("--undo", path).code == 23
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileError, match="no regular file"):
        read_journal(os.fsencode(path))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no journal",
        signed('{"journal":"rdc dedupe","v":4}'),
        signed('{"journal":"rdc dupes","v":2}'),
        HEAD + b"garbage\n",
        HEAD + record().replace(b'"size": 1', b'"size": 2'),
        HEAD + signed("[]"),
        HEAD + signed("[" * 100_000),
        HEAD + signed('{"top":1}'),
        HEAD + record(extra=1),
        HEAD + record(path=B64["up"]),
        HEAD + record(path=B64["abs"]),
        HEAD + record(path=7),
        HEAD + record(path="!"),
        HEAD + record(path=""),
        HEAD + record(top=B64["rel"]),
        HEAD + record(kept=B64["rel"]),
        HEAD + record(inode="1"),
        HEAD + record(size=True),
        HEAD + record(size=-1),
        HEAD + record(mtime_ns=1 << 100),
        HEAD + record(mode=0o10000),
        HEAD + record(uid=-1),
        HEAD + record(gid=1 << 32),
        HEAD + record(top=base64.b64encode(b"/a\0b").decode()),
        HEAD + record(top=base64.b64encode(b"/" + b"a" * 70_000).decode()),
        *(NEW + lines for lines in MISFITS),
    ],
)
def test_what_is_no_journal(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(text)
    with pytest.raises(FileError, match=r"journal, line \d: expected .*; nothing was undone"):
        read_journal(os.fsencode(path))
    run = dedupe("--text", "--undo", path)
    assert run.code == 23
    assert len(run.err.splitlines()) == 1


def test_a_journal_is_not_believed(tmp_path: Path) -> None:
    """Names that are no links of the recorded file are skipped, and no link leads out of the tree."""
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    for place in (top, outside):
        (place / "one").write_bytes(b"content")
        os.link(place / "one", place / "two")
    (top / "away").symlink_to(outside)
    (top / "alone").write_bytes(b"content")
    inode = os.stat(outside / "one").st_ino

    def record_of(path: bytes, number: int, where: Path = top) -> Change:
        return change(path, KeptFile(b"/", b"k", number, 7, b""), os.fsencode(where), inode=0)

    records = [
        record_of(b"away/one", inode),
        record_of(b"one", inode + 12345),
        record_of(b"alone", os.stat(top / "alone").st_ino),
        record_of(b"gone", inode),
        record_of(b"one", inode, tmp_path / "none"),
    ]
    journal = JournalWriter(os.fsencode(tmp_path / "journal"))
    journal.write(records)
    journal.close()
    run = dedupe("--undo", tmp_path / "journal")
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (23, 0, 2)
    assert os.stat(outside / "one").st_nlink == os.stat(top / "one").st_nlink == 2


def test_undo_after_writing(tree: Path) -> None:
    journal = tree.parent / "journal"
    dedupe("--hardlink", "--apply", "--journal", journal, tree)
    with (tree / "a" / "group0-copy1").open("ab") as file:
        file.write(b"more")
    run = dedupe("--undo", journal)
    assert (run.code, run.summary["files"]) == (0, 6)
    assert "written to since it was linked" in messages(run)
    assert (tree / "b" / "group0-copy0").read_bytes().endswith(b"more")
    assert linked(tree, *seen(tree)) == len(seen(tree))


def test_undo_stops_at_a_cap(tree: Path) -> None:
    journal = tree.parent / "journal"
    dedupe("--hardlink", "--apply", "--journal", journal, tree)
    run = dedupe("--undo", journal, "--max-files=2")
    assert (run.code, run.summary["files"]) == (25, 2)
    assert dedupe("--undo", journal).summary["files"] == 4
