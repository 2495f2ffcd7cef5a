"""Old files replaced in bulk: the C part does what Python does file by file, and keeps what it keeps."""

from __future__ import annotations

import os
import random
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import FileError, RdcError
from rdc.files import _files
from rdc.files.base import directory_descriptors as directory_module
from rdc.files.bulk import small_files as small
from rdc.files.bulk.open_many import identities_of
from rdc.files.bulk.small_files import NewVersions
from rdc.files.facts.extents import holes
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.policies import WriteQuota
from rdc.files.root.root import HOLE_BYTES, Root, WritePolicy
from rdc.model.entries import ComparedFields, Identity, IdentityColumns, Metadata
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.trees import File, Node, litter, read_tree

OWNER = os.geteuid() == 0
MTIMES = (0, 1, -1, -1_000_000_001, 1_700_000_000_000_000_007)
MODES = (0o600, 0o644, 0o444, 0o4755, 0o000)


def versions_of(paths: list[bytes], expected: list[Identity], sizes: list[int], seed: int = 0) -> NewVersions:
    rng, n = random.Random(seed), len(paths)
    return NewVersions(
        paths,
        IdentityColumns(expected),
        array("H", rng.choices(MODES, k=n)).tobytes(),
        array("Q", sizes).tobytes(),
        array("q", rng.choices(MTIMES, k=n)).tobytes(),
        array("I", [1234 if OWNER and i % 2 else os.geteuid() for i in range(n)]).tobytes(),
        array("I", [2345 if OWNER and i % 3 else os.getegid() for i in range(n)]).tobytes(),
    )


def metadata(versions: NewVersions, row: int) -> Metadata:
    return Metadata(
        array("H", versions.modes)[row],
        array("q", versions.mtimes)[row],
        array("I", versions.uids)[row],
        array("I", versions.gids)[row],
    )


def one_by_one(
    group: CommitGroup, root: Root, versions: NewVersions, contents: list[bytes], rows: list[int]
) -> None:
    for row in rows:
        path = versions.paths[row]
        replacement = Replacement(root, path)
        replacement.write(contents[row])
        group.add(replacement, path, metadata(versions, row), OWNER, versions.expected[row])


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def become_another(path: Path) -> None:
    path.rename(path.with_name(path.name + "~"))
    path.write_bytes(b"old")


MEDDLING: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "written to": lambda path: path.write_bytes(b"somebody else's"),
    "gone": Path.unlink,
    "a directory": become_a_directory,
    "a link": become_a_link,
    "another file": become_another,
    "its mode": lambda path: path.chmod(0o755),
    "another name": lambda path: os.link(path, path.with_name(path.name + "+")),
}


@settings(deadline=None, max_examples=examples(60))
@given(st.builds(random.Random, st.integers(0, 1 << 32)), st.booleans(), st.sampled_from((3, 1000)))
def test_the_same_comes_of_both_ways(rng: random.Random, fsync: bool, files: int) -> None:
    """In C, and file by file, whatever happens to the old files before and after the new ones are written."""
    count = rng.randrange(1, 30)
    names = [rng.choice((b"", b"d/", b"d/e/")) + b"f%02d" % row for row in range(count)]
    contents = [rng.randbytes(rng.choice((0, 1, 5000))) for _ in names]
    before, after = ([rng.choice(["nothing"] * 6 + list(MEDDLING)) for _ in names] for _ in range(2))
    linked = [rng.random() < 0.2 for _ in names]
    outcomes = []
    for way in (_files, None):
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
            patch.setattr(small, "_extension", way)
            top = Path(place)
            (top / "d" / "e").mkdir(parents=True)
            for name, link in zip(names, linked, strict=True):
                path = top / os.fsdecode(name)
                path.write_bytes(b"old")
                if link:
                    os.link(path, path.with_name(path.name + "-linked"))
            root = Root.open(os.fsencode(top))
            committed: list[bytes] = []
            failed: list[FileError] = []
            expected = [root.identity(name) for name in names]
            versions = versions_of(names, expected, list(map(len, contents)))
            for name, what in zip(names, before, strict=True):
                MEDDLING[what](top / os.fsdecode(name))
            group = CommitGroup(
                root, fsync=fsync, on_commit=committed.append, on_error=failed.append, files=files
            )
            changed, rows = group.add_versions(versions, b"".join(contents), OWNER)
            if way is None:
                assert (changed, rows) == ([], list(range(count)))
            else:
                now = identities_of(root, names)
                assert changed == [row for row in range(count) if now[row] != expected[row]] or files == 3
                assert rows == []
            one_by_one(group, root, versions, contents, rows)
            for name, what, earlier in zip(names, after, before, strict=True):
                path = top / os.fsdecode(name)
                if earlier == "nothing" and files > count:
                    MEDDLING[what](path)
            group.flush()
            tree = {
                path: (node, (os.lstat(top / os.fsdecode(path)).st_nlink if path else 0))
                for path, node in read_tree(top).items()
                if not (top / os.fsdecode(path)).is_dir()
            }
            assert litter(read_tree(top)) == []
            # What was another file before anything was written is told at once, and else in the end.
            kept = {error.path_bytes for error in failed} | {names[row] for row in changed}
            assert sorted(kept | set(committed)) == sorted(names)
            outcomes.append((sorted(committed), sorted(kept), dated(tree, committed)))
            root.close()
    assert outcomes[0] == outcomes[1]


def dated(tree: Mapping[bytes, tuple[Node, int]], ours: list[bytes]) -> dict[bytes, object]:
    """With the times of our files alone: those of what others made are of each way's own clock."""
    found: dict[bytes, object] = {}
    for path, (node, links) in tree.items():
        if isinstance(node, File):
            found[path] = (node.content, node.mode, links, node.mtime_ns if path in ours else None)
        else:
            found[path] = getattr(node, "target", None)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b", "d/c"):
        (tmp_path / name).write_bytes(b"old")
    opened = Root.open(os.fsencode(tmp_path))
    yield opened
    opened.close()


PATHS = [b"d/c", b"a", b"d/b"]


def test_metadata_is_what_is_asked_for(tmp_path: Path, root: Root) -> None:
    versions = versions_of(PATHS, [root.identity(path) for path in PATHS], [1, 2, 3], seed=5)
    with CommitGroup(root, fsync=False, on_commit=lambda _: None) as group:
        assert group.add_versions(versions, b"122333", OWNER) == ([], [])
        assert [(tmp_path / os.fsdecode(path)).read_bytes() for path in PATHS] == [b"old"] * 3
    for row, content in enumerate((b"1", b"22", b"333")):
        assert root.metadata(PATHS[row]) == metadata(versions, row)
        os.chmod(tmp_path / os.fsdecode(PATHS[row]), 0o600)
        assert (tmp_path / os.fsdecode(PATHS[row])).read_bytes() == content


def test_what_is_staged_is_closed_and_removed(tmp_path: Path, root: Root) -> None:
    versions = versions_of(PATHS, [root.identity(path) for path in PATHS], [1, 1, 1])
    group = CommitGroup(root, fsync=False, on_commit=lambda _: None)
    root.directory(b"d")
    before = open_descriptors()
    assert group.add_versions(versions, b"123", OWNER) == ([], [])
    assert len(litter(read_tree(tmp_path))) == 3
    group.abandon()
    assert litter(read_tree(tmp_path)) == []
    assert len(open_descriptors()) <= len(before)


def test_directories_that_were_moved_away_get_nothing(tmp_path: Path, root: Root) -> None:
    versions = versions_of(PATHS, [root.identity(path) for path in PATHS], [1, 1, 1])
    committed: list[bytes] = []
    failed: list[FileError] = []
    group = CommitGroup(root, fsync=False, on_commit=committed.append, on_error=failed.append)
    assert group.add_versions(versions, b"123", OWNER) == ([], [])
    (tmp_path / "d").rename(tmp_path / "moved")
    (tmp_path / "d").mkdir()
    group.flush()
    assert committed == [b"a"]
    assert [error.path_bytes for error in failed] == [b"d/c", b"d/b"]
    assert set(read_tree(tmp_path)) == {b"", b"a", b"d", b"moved", b"moved/b", b"moved/c"}
    assert (tmp_path / "moved" / "b").read_bytes() == b"old"


@pytest.mark.parametrize("files", [1, 100])
def test_two_names_of_one_file_are_both_replaced(files: int, tmp_path: Path, root: Root) -> None:
    """In one group, where the second finds the first gone from the file, and in two."""
    (tmp_path / "d" / "b").unlink()
    os.link(tmp_path / "a", tmp_path / "d" / "b")
    versions = versions_of([b"a", b"d/b"], [root.identity(b"a")] * 2, [1, 1])
    committed: list[bytes] = []
    failed: list[FileError] = []
    with CommitGroup(
        root, fsync=False, on_commit=committed.append, on_error=failed.append, files=files
    ) as group:
        changed, rows = group.add_versions(versions, b"12", OWNER)
    # Once the first is in place the second is not what it was when it is looked at.
    assert (changed, rows, failed) == ([1] if files == 1 else [], [], [])
    assert committed == ([b"a"] if files == 1 else [b"a", b"d/b"])
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "d" / "b").read_bytes() == (b"old" if files == 1 else b"2")


def test_a_link_on_the_way_leads_nowhere(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", 1e9)
    expected = [root.identity(path) for path in PATHS]
    root.directory(b"d", fresh=True)
    (tmp_path / "d").rename(tmp_path / "real")
    (tmp_path / "d").symlink_to("real")
    versions = versions_of(PATHS, expected, [1, 1, 1])
    committed: list[bytes] = []
    for known in (True, False):
        # Where the directory was open already it is looked at in the end; else each file by itself has the
        # error.
        opened = root if known else Root.open(os.fsencode(tmp_path))
        group = CommitGroup(opened, fsync=False, on_commit=committed.append, on_error=lambda _: None)
        assert group.add_versions(versions, b"123", OWNER) == ([], [] if known else [0, 1, 2])
        group.flush()
        assert committed == ([b"a"] if known else [])
        committed.clear()
        (tmp_path / "a").write_bytes(b"old")
        assert litter(read_tree(tmp_path)) == []
        assert (tmp_path / "real" / "b").read_bytes() == b"old"
    opened.close()


def test_what_may_not_be_written_is_left_to_be_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    root = Root(os.open(tmp_path, os.O_PATH | os.O_DIRECTORY), b"top", writes=WritePolicy(WriteQuota(10)))
    group = CommitGroup(root, fsync=False, on_commit=lambda _: None)
    versions = versions_of([b"a"], [root.identity(b"a")], [100])
    assert group.add_versions(versions, bytes(100), OWNER) == ([], [0])
    with pytest.raises(RdcError, match="may write"):
        one_by_one(group, root, versions, [bytes(100)], [0])
    root.close()


def test_times_beyond_the_columns_are_compared_one_by_one() -> None:
    """Columns hold stamps of such times, which mean nothing to C. In memory (tmpfs) all seconds can be."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        (Path(made) / "a").write_bytes(b"old")
        os.utime(Path(made) / "a", ns=(0, 1 << 64))
        root = Root.open(os.fsencode(made))
        versions = versions_of([b"a"], [root.identity(b"a")], [1])
        with CommitGroup(root, fsync=False, on_commit=lambda _: None) as group:
            assert group.add_versions(versions, b"1", OWNER) == ([0], [])
            assert root.check.is_still(versions.expected[0], root.identity(b"a"))
        root.close()


@pytest.mark.parametrize(
    ("fields", "meddle"),
    [
        (ComparedFields(ctime=False), lambda path: path.chmod(0o750)),
        (ComparedFields(ctime=False, mtime=False), lambda path: os.utime(path, (7, 7))),
        (ComparedFields(ctime=False, inode=False), lambda path: replace_alike(path)),  # noqa: PLW0108 - defined below
        (ComparedFields(ctime=False, mtime=False, size=False), lambda path: path.write_bytes(b"longer")),
    ],
)
@pytest.mark.parametrize("way", [_files, None], ids=["bulk", "singly"])
def test_what_a_file_system_does_not_keep_does_not_count(
    fields: ComparedFields,
    meddle: Callable[[Path], object],
    way: ModuleType | None,
    tmp_path: Path,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(small, "_extension", way)
    for counts in (True, False):
        (tmp_path / "a").unlink()
        (tmp_path / "a").write_bytes(b"old")
        versions = versions_of([b"a"], [root.identity(b"a")], [1])
        meddle(tmp_path / "a")
        if not counts:
            root.check.leave_out(fields)
        failed: list[FileError] = []
        with CommitGroup(root, fsync=False, on_commit=lambda _: None, on_error=failed.append) as group:
            changed, rows = group.add_versions(versions, b"1", OWNER)
            one_by_one(group, root, versions, [b"1"], rows)
        assert bool(changed or failed) == counts
        assert ((tmp_path / "a").read_bytes() == b"1") != counts


def replace_alike(path: Path) -> None:
    found = path.stat()
    path.rename(path.with_name("aside"))
    path.write_bytes(path.with_name("aside").read_bytes())
    os.utime(path, ns=(0, found.st_mtime_ns))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from((0, 1, 4095))), min_size=1, max_size=8),
    st.sampled_from((0, HOLE_BYTES, 4 * HOLE_BYTES)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_of_zeros_become_holes(ext4: Path, runs: list[tuple[int, int]], least: int) -> None:
    """All of them, or only long runs, or none: by blocks of the file, the last of which may be shorter."""
    content = b"".join(bytes(blocks * HOLE_BYTES + more) + b"x" for blocks, more in runs)[:-1]
    directory = os.open(ext4, os.O_PATH)
    columns = (b"a\0", array("Q", [len(content)]), bytes(8), b"\x80\1", bytes(4), bytes(4))
    try:
        fds, temporaries, _ = _files.stage_small(
            array("i", [directory]), *columns, False, content, least, os.urandom(4), None, 0, 1
        )
        (fd,) = array("i", fds)
        assert os.pread(fd, len(content) + 1, 0) == content
        zeros = [not any(content[at : at + HOLE_BYTES]) for at in range(0, len(content), HOLE_BYTES)]
        left_out = []
        for is_zeros, blocks in groupby(range(len(zeros)), zeros.__getitem__):
            some = list(blocks)
            if is_zeros and least and len(some) >= least // HOLE_BYTES:
                left_out.append((some[0] * HOLE_BYTES, min(len(content), (some[-1] + 1) * HOLE_BYTES)))
        assert list(holes(fd, len(content))) == left_out
        _files.close_files(fds)
        os.unlink(temporaries[:-1], dir_fd=directory)
    finally:
        os.close(directory)


@pytest.mark.parametrize("expected", [bytes(79), bytes(81), bytes(40)])
def test_what_is_expected_is_a_column_for_each_file(expected: bytes) -> None:
    with open(os.devnull) as null:
        fds = array("i", [null.fileno()] * 2)
        columns = (b"a\0b\0", array("Q", [1, 1]), bytes(16), bytes(4), bytes(8), bytes(8))
        with pytest.raises(ValueError, match="expected"):
            _files.stage_small(fds, *columns, False, b"12", 0, bytes(8), expected, 15, 1)
        with pytest.raises(ValueError, match="expected"):
            _files.rename_small(fds, b".rdc-0123456789abcdef.tmp\0" * 2, b"a\0b\0", bytes(8), expected, 15, 1)
        with pytest.raises(ValueError, match="directories"):
            _files.stage_small(fds[:1], *columns, False, b"12", 0, bytes(8), None, 0, 1)
