"""--fake-super with --acls, beside rsync's: ACLs are kept in its attributes, and come back."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.facts.xattrs import packed_acl, unpacked_acl
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL
from rdc.model.sync import SyncOptions
from tests.end_to_end.metadata.fake_super import OLD, ROOT, rsync, seen
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

OPTIONS = SyncOptions(fake_super=True, acls=True, fsync=False)
KEPT_ACCESS = "user.rsync.%aacl"
OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHERS = 1, 2, 4, 8, 16, 32
NOBODY = 0xFFFFFFFF


def acl(
    owner: int,
    group: int,
    others: int,
    mask: int | None,
    users: Sequence[tuple[int, int]] = (),
    groups: Sequence[tuple[int, int]] = (),
) -> bytes:
    """The kernel's form (acl(5)); `users` and `groups` are ids with their rights."""
    entries = [(OWNER, owner, NOBODY), *((USER, rights, number) for number, rights in users)]
    entries += [(GROUP, group, NOBODY), *((NAMED_GROUP, rights, number) for number, rights in groups)]
    entries += [(MASK, mask, NOBODY)] if mask is not None else []
    entries.append((OTHERS, others, NOBODY))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def made(top: Path) -> Path:
    """Entries of each kind that may have an ACL."""
    (top / "sub/below").mkdir(parents=True)
    for name, mode in {
        "several": 0o664,
        "suid": 0o4750,
        "closed": 0o400,
        "plain": 0o640,
        "masked": 0o644,
    }.items():
        (top / name).write_text(name)
        (top / name).chmod(mode)
    os.mkfifo(top / "fifo", 0o600)
    (top / "link").symlink_to("several")
    given = {
        "several": acl(6, 4, 4, 7, [(9, 4), (1234, 6)], [(55, 5)]),
        "suid": acl(7, 5, 0, 5, [(9, 4)]),
        "closed": acl(4, 4, 0, 4, [(9, 4)]),
        "masked": acl(6, 6, 4, 4, [(9, 4)]),
        "fifo": acl(6, 5, 0, 5, [(9, 4)]),
        "sub": acl(7, 5, 0, 7, [(7, 7)]),
    }
    for name, value in given.items():
        os.setxattr(top / name, ACCESS_ACL, value)
    (top / "suid").chmod(0o4750)
    os.setxattr(top / "sub", DEFAULT_ACL, acl(7, 5, 1, 5, [(8, 5)]))
    os.setxattr(top / "sub/below", DEFAULT_ACL, acl(7, 5, 1, None))
    if ROOT:
        os.chown(top / "several", 1234, 555)
        os.chown(top / "sub", 9, 10)
    for path in (*top.rglob("*"), top):
        os.utime(path, ns=(OLD, OLD), follow_symlinks=False)
    return top


def kept(top: Path) -> dict[str, object]:
    """Everything of a tree, but for the numbers that are kept as masks: rsync writes that of any entry whose
    ACL is alike otherwise, and reads none."""
    found = seen(top)
    for path in sorted([top, *top.rglob("*")]):
        if KEPT_ACCESS in os.listxattr(path, follow_symlinks=False):
            value = os.getxattr(path, KEPT_ACCESS)
            assert value[8:12] != struct.pack("<I", 0x80)
            os.setxattr(path, KEPT_ACCESS, value[:8] + bytes(4) + value[12:])
            found[str(path.relative_to(top))] = seen(path.parent)[path.name]
            os.setxattr(path, KEPT_ACCESS, value)
    return found


@pytest.mark.needs("rsync")
@pytest.mark.skipif(not ROOT, reason="real owners need root")
def test_each_reads_what_the_other_wrote(tmp_path: Path) -> None:
    source, top, peer = made(tmp_path / "s"), tmp_path / "d", tmp_path / "p"
    rsync("-A", "-M--fake-super", f"{source}/", peer)
    run = run_sync(source, top, OPTIONS, way=Way.PULL)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert kept(top) == kept(peer)
    assert os.getxattr(top / "suid", KEPT_ACCESS) == struct.pack("<6I", 0x80, 0x80, 5, 0x80, 9, 0x80000004)
    assert ACCESS_ACL.decode() not in os.listxattr(top / "suid")
    assert not rsync("-ni", "-A", "-M--fake-super", f"{source}/", top)
    assert run_sync(source, top, OPTIONS, way=Way.PULL).items == []
    back, copy = tmp_path / "b", tmp_path / "c"
    run_sync(peer, back, OPTIONS, way=Way.PUSH)
    assert seen(back) == seen(source)
    run_sync(peer, copy, OPTIONS)
    assert kept(copy) == kept(peer)


@pytest.mark.needs("rsync")
@pytest.mark.skipif(not ROOT, reason="real owners need root")
def test_what_changes_is_kept_too(tmp_path: Path) -> None:
    source, top, peer = made(tmp_path / "s"), tmp_path / "d", tmp_path / "p"
    run_sync(source, top, OPTIONS, way=Way.PULL)
    os.removexattr(source / "several", ACCESS_ACL)
    (source / "several").chmod(0o600)
    os.setxattr(source / "plain", ACCESS_ACL, acl(6, 4, 0, 6, [(3, 6)]))
    os.setxattr(source / "sub", ACCESS_ACL, acl(7, 0, 0, 5, [(7, 5)]))
    os.removexattr(source / "sub/below", DEFAULT_ACL)
    run = run_sync(source, top, OPTIONS, way=Way.PULL)
    assert run.problems == []
    rsync("-A", "-M--fake-super", f"{source}/", peer)
    wanted, found = kept(peer), kept(top)
    for facts in (wanted, found):
        facts.pop("several")  # it has another owner, so each keeps a %stat, but only rdc sets the mode first
    assert found == wanted
    assert KEPT_ACCESS not in os.listxattr(top / "several")
    assert run_sync(source, top, OPTIONS, way=Way.PULL).items == []


def test_who_may_set_nothing_keeps_all_the_same() -> None:
    with place_of_nobody() as place:
        place.chmod(0o755)
        source, kept_by_root, top, back = made(place / "s"), place / "r", place / "d", place / "b"
        (source / "closed").chmod(0o444)
        (source / "fifo").chmod(0o654)
        for path in (
            source / "sub",
            source / "several",
            source / "suid",
            source / "masked",
            source / "plain",
        ):
            path.chmod(0o4755)

        def keeps() -> list[object]:
            runs = [run_sync(kept_by_root, top, OPTIONS) for _ in range(2)]
            return [(run.problems, bool(run.items)) for run in runs]

        run_sync(source, kept_by_root, OPTIONS, way=Way.PULL)
        assert as_nobody(keeps) == [([], True), ([], False)]
        run_sync(top, back, OPTIONS, way=Way.PUSH)
        if ROOT:
            assert seen(back) == seen(source)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        bytes(15),
        bytes(20),
        struct.pack("<4I", 0x80, 9, 0x80, 0x80),
        struct.pack("<6I", 0x80, 4, 4, 0x80, 1, 64),
    ],
)
def test_a_wrong_attribute_is_named_and_what_dst_has_stays(value: bytes, tmp_path: Path) -> None:
    source, top = tmp_path / "s", tmp_path / "d"
    for place in (source, top):
        place.mkdir()
        (place / "f").write_text("f")
        os.utime(place / "f", ns=(OLD, OLD))
    os.setxattr(source / "f", KEPT_ACCESS, value)
    os.setxattr(top / "f", ACCESS_ACL, acl(6, 4, 4, 4, [(9, 4)]))
    run = run_sync(source, top, OPTIONS, way=Way.PUSH)
    assert (run.done.exit, [problem.path_bytes for problem in run.problems]) == (ExitCode.PARTIAL, [b"f"])
    assert "--fake-super keeps" in run.problems[0].message
    assert os.getxattr(top / "f", ACCESS_ACL) == acl(6, 4, 4, 4, [(9, 4)])


def test_without_acls_they_stay_behind(tmp_path: Path) -> None:
    source, top = made(tmp_path / "s"), tmp_path / "d"
    run_sync(source, top, replace(OPTIONS, acls=False, xattrs=True), way=Way.PULL)
    assert not any(KEPT_ACCESS in os.listxattr(path, follow_symlinks=False) for path in top.rglob("*"))


RIGHTS = st.integers(0, 7)
NAMED = st.lists(st.tuples(st.integers(0, 2**32 - 2), RIGHTS), max_size=3)


@given(RIGHTS, RIGHTS, RIGHTS, RIGHTS | st.none(), NAMED, NAMED)
def test_what_is_kept_of_an_acl_says_the_same(
    owner: int,
    group: int,
    others: int,
    mask: int | None,
    users: list[tuple[int, int]],
    groups: list[tuple[int, int]],
) -> None:
    if (users or groups) and mask is None:
        mask = 7
    whole = acl(owner, group, others, mask, users, groups)
    assert unpacked_acl(DEFAULT_ACL, packed_acl(DEFAULT_ACL, whole), 0) == whole
    mode = owner << 6 | (group if mask is None else mask) << 3 | others
    back = unpacked_acl(ACCESS_ACL, packed_acl(ACCESS_ACL, whole), mode)
    if mask is not None or group != mode >> 3 & 7:
        assert back == whole
    else:
        assert back == b""


@given(st.binary(max_size=60), st.integers(0, 0o7777))
def test_any_bytes_are_read_or_refused(value: bytes, mode: int) -> None:
    for name in (ACCESS_ACL, DEFAULT_ACL):
        try:
            unpacked = unpacked_acl(name, value, mode)
        except ValueError:
            continue
        assert unpacked[:4] in (b"", b"\2\0\0\0")
