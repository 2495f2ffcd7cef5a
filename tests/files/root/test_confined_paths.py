"""No name, link or other process leads an operation out of the root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileChangedError, FileError, RdcError
from rdc.files.base import directory_descriptors as directory_module
from rdc.files.base.metadata import ANYTHING
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.limits import NAME_BYTES, PATH_BYTES
from rdc.model.entries import Kind, Metadata
from tests.files.root.root_entries import OPERATIONS, PLAIN, get, names, put
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors


def snapshot(top: bytes) -> dict[bytes, tuple[Any, ...]]:
    """Everything below `top` that an operation could have changed."""
    found: dict[bytes, tuple[Any, ...]] = {}
    for current, directories, files in os.walk(top):
        for name in [*directories, *files, b"."]:
            path = os.path.join(current, name)
            status = os.lstat(path)
            content = Path(os.fsdecode(path)).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(names, min_size=1, max_size=6, unique=True))
def test_any_name_is_written_listed_read_and_removed(entries: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as where:
        root = Root.open(os.fsencode(where))
        folder = entries[0]
        root.make_directory(folder)
        for name in entries:
            put(root, folder + b"/" + name, name)
        listing = root.list(folder)
        assert listing.names == tuple(sorted(entries))
        for name in entries:
            assert get(root, folder + b"/" + name) == name
        for name in entries:
            root.remove(folder + b"/" + name)
        root.remove(folder, directory=True)
        assert os.listdir(where) == []


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "path",
    [
        b"..",
        b".",
        b"../outside/f",
        b"a/../../outside/f",
        b"a/..",
        b"a/./f",
        b"/etc/passwd",
        b"/",
        b"a//f",
        b"a/",
        b"a/f\0",
        b"n" * (NAME_BYTES + 1),
        b"n" * (NAME_BYTES + 1) + b"/f",
        b"a/" * (PATH_BYTES // 2) + b"f",
    ],
    ids=lambda p: repr(p[:20]),
)
def test_paths_that_are_no_plain_names_are_refused(
    top: bytes, root: Root, operation: str, path: bytes
) -> None:
    get(root, b"a/f")  # a known parent must not shorten the check
    before = snapshot(top)
    with pytest.raises(FileError) as caught:
        OPERATIONS[operation](root, path)
    assert caught.value.code == ExitCode.PARTIAL
    assert snapshot(top) == before


components = st.sampled_from(
    [b"a", b"b", b"f", b"l", b"..", b".", b"", b"inside", b"outside", b"\0", b"x" * 256]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(components, min_size=1, max_size=5), st.sampled_from(sorted(OPERATIONS)))
def test_no_path_leaves_the_root(parts: list[bytes], operation: str) -> None:
    with tempfile.TemporaryDirectory() as where:
        base = os.fsencode(where)
        for side in (b"/inside", b"/outside"):
            os.makedirs(base + side + b"/a/b")
            Path(os.fsdecode(base + side + b"/f")).write_bytes(side)
        os.symlink(b"../outside", base + b"/inside/l")
        before = snapshot(base + b"/outside")
        with suppress(FileError):
            OPERATIONS[operation](Root.open(base + b"/inside"), b"/".join(parts))
        assert snapshot(base + b"/outside") == before


@pytest.mark.parametrize("target", [b"../outside", b"../inside/real", b"/", b"loop"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_link_on_the_way_is_never_followed(top: bytes, root: Root, operation: str, target: bytes) -> None:
    os.rename(top + b"/inside/a", top + b"/inside/real")
    os.symlink(target, top + b"/inside/a")
    before = snapshot(top)
    for path in (b"a/f", b"a/b/f"):
        with pytest.raises(FileError):
            OPERATIONS[operation](root, path)
    assert snapshot(top) == before


@pytest.mark.parametrize("trusted", [0.0, 3600.0])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_directory_swapped_for_a_link_between_calls(
    top: bytes, root: Root, operation: str, trusted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", trusted)
    get(root, b"a/b/f")
    get(root, b"a/f")
    os.rename(top + b"/inside/a", top + b"/inside/moved")
    os.symlink(top + b"/outside/a", top + b"/inside/a")
    outside = snapshot(top + b"/outside")
    everything = snapshot(top)
    try:
        OPERATIONS[operation](root, b"a/b/f")
        assert trusted, "a fresh descriptor must notice the link"
    except FileError:
        pass
    assert snapshot(top + b"/outside") == outside
    if not trusted:
        assert snapshot(top) == everything


@pytest.mark.parametrize("trusted", [0.0, 3600.0])
def test_a_commit_notices_that_its_directory_was_moved(
    top: bytes, root: Root, trusted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", trusted)
    group = CommitGroup(root, on_commit=lambda _: None)
    replacement = Replacement(root, b"a/f")
    replacement.write(b"new")
    group.add(replacement, b"a/f", PLAIN, False, ANYTHING)
    os.rename(top + b"/inside/a", top + b"/outside/moved")
    os.mkdir(top + b"/inside/a")
    with pytest.raises(FileError, match="another one at that path"):
        group.flush()
    assert os.listdir(top + b"/inside/a") == []
    assert sorted(os.listdir(top + b"/outside/moved")) == [b"b", b"f", b"l"]
    assert Path(os.fsdecode(top + b"/outside/moved/f")).read_bytes() == b"/inside/a/f"


def test_a_directory_removed_and_made_again_is_used_at_once(
    top: bytes, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", 3600.0)
    assert root.kind(b"a/b/f") == Kind.FILE
    os.unlink(top + b"/inside/a/b/f")
    os.rmdir(top + b"/inside/a/b")
    assert root.kind(b"a/b/f") is None
    os.mkdir(top + b"/inside/a/b")
    put(root, b"a/b/f", b"again")
    assert get(root, b"a/b/f") == b"again"
    assert root.list(b"a/b").names == (b"f",)


SWAP = """
import os, random, sys, time
os.chdir(sys.argv[1])
while True:
    for old, new in (("a", "kept"), ("trap", "a"), ("a", "trap"), ("kept", "a")):
        os.rename(old, new)
        if new == "a":  # an uneven beat, so that neither state is all that is ever seen
            time.sleep(random.random() / 5000)
"""


def test_links_swapped_in_while_everything_runs(top: bytes, root: Root) -> None:
    """Another process keeps exchanging a directory and a link to the outside."""
    outside = snapshot(top + b"/outside")
    os.symlink(top + b"/outside/a", top + b"/inside/trap")
    tried = ("open_read", "replace", "set_metadata", "remove_file", "replace_symlink", "list")
    done = failed = 0
    with subprocess.Popen([sys.executable, "-c", SWAP, top + b"/inside"]) as attacker:
        try:
            for turn in range(100_000):
                for operation in tried:
                    root.forget(b"")
                    try:
                        OPERATIONS[operation](root, b"a/b/%d" % turn if turn % 3 else b"a/f")
                        done += 1
                    except RdcError:
                        failed += 1
                if turn >= 500 and done > 100 and failed > 100:
                    break
            assert attacker.poll() is None
        finally:
            attacker.kill()
    assert snapshot(top + b"/outside") == outside
    assert done > 100, "the attack must leave some operations through, or nothing was tested"
    assert failed > 100, "and stop some"


def test_what_is_at_the_end_of_a_path_is_not_followed_either(top: bytes, root: Root) -> None:
    target = top + b"/outside/f"
    before = snapshot(top + b"/outside")
    acts: dict[bytes, Callable[[bytes], object]] = {
        b"1": lambda p: root.set_metadata(
            p, Kind.SYMLINK, Metadata(0o777, 5, 65534, 65534), owner=not os.geteuid()
        ),
        b"2": lambda p: put(root, p, b"new"),
        b"3": lambda p: root.replace_symlink(p, b"elsewhere"),
        b"4": root.remove,
    }
    for name, act in acts.items():
        os.symlink(target, top + b"/inside/" + name)
        act(name)
    assert snapshot(top + b"/outside") == before
    assert root.metadata(b"1").mtime_ns == 5
    assert root.kind(b"2") == Kind.FILE
    assert os.readlink(top + b"/inside/3") == b"elsewhere"
    assert root.kind(b"4") is None
    os.symlink(target, top + b"/inside/6")
    os.symlink(top + b"/outside/a", top + b"/inside/7")
    with pytest.raises(FileChangedError, match="symbolic link"):
        root.open_read(b"6")
    with pytest.raises(FileError):
        root.set_metadata(b"6", Kind.FILE, PLAIN, owner=False)
    with pytest.raises(FileError):
        root.make_directory(b"7")
    with pytest.raises(FileChangedError):
        root.list(b"7")
    assert snapshot(top + b"/outside") == before


def test_a_path_longer_than_one_system_call_takes(root: Root) -> None:
    before, path = root.list(b"").names, b""
    for level in range(60):
        path = (path + b"/" if path else b"") + b"%03d-" % level + b"d" * 196
        root.make_directory(path)
    assert len(path) > 12_000
    put(root, path + b"/file", b"deep")
    root.close()
    assert get(root, path + b"/file") == b"deep"
    assert root.list(path).names == (b"file",)
    root.remove(path + b"/file")
    while path:
        root.remove(path, directory=True)
        path = path.rpartition(b"/")[0]
    assert root.list(b"").names == before


def test_descriptors_stay_bounded_and_are_closed(root: Root) -> None:
    before = open_descriptors()
    for index in range(300):
        root.make_directory(b"d%d" % index)
        put(root, b"d%d/f" % index, b"x")
    assert len(open_descriptors() - before) <= directory_module.CACHED_DIRECTORIES
    root.close()
    assert open_descriptors() == before
