"""Without /proc, as in a chroot or on a rescue system, what needs a path through a descriptor works too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rdc.files.base import paths
from rdc.files.base.paths import at_entry, in_directory, path_of_directory
from rdc.files.facts import xattrs
from rdc.files.root import followed_links
from tests.support.project_paths import TOP
from tests.support.running.syncing import RDC, command

ACL = bytes.fromhex(
    "02000000010006ffffffffff02000400e8030000040004ffffffffff100006ffffffffff200000ffffffffff"
)
"""rw for the owner, r for the user 1000 and the group, nothing for others, in the kernel's form."""


def made(top: Path) -> Path:
    (top / "d").mkdir(parents=True)
    for name in ("a", "d/b", "unreadable"):
        path = top / name
        path.write_bytes(name.encode())
        os.setxattr(path, "user.k", name.encode())
        os.utime(path, (1_000_000, 2_000_000))
    os.symlink("d/b", top / "link")
    os.setxattr(top / "d", "user.of-directory", b"v")
    with suppress(OSError):  # a file system may keep none
        os.setxattr(top / "a", "system.posix_acl_access", ACL)
    (top / "unreadable").chmod(0)
    return top


def kept(top: Path) -> dict[str, dict[str, bytes]]:
    return {
        str(path.relative_to(top)): {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
        for path in sorted(top.rglob("*"))
    }


@pytest.fixture(params=["by name", "in Python"])
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have no /proc mounted: where the system lists attributes by name, and where it does not."""
    for module in (paths, xattrs, followed_links):
        monkeypatch.setattr(module, "has_proc", lambda: False)
    if request.param == "in Python":
        monkeypatch.setattr(xattrs, "_by_name", False)
    yield


@pytest.mark.usefixtures("without")
def test_attributes_acls_and_access_times_arrive(tmp_path: Path) -> None:
    source = made(tmp_path / "s")
    words = ("sync", "-q", "-X", "-A", "--atimes", "--open-noatime", f"{source}/", f"{tmp_path}/d/")
    assert command(*words).code == 0
    assert kept(tmp_path / "d") == kept(source)
    assert int((tmp_path / "d" / "d" / "b").stat().st_atime) == 1_000_000
    os.setxattr(source / "a", "user.k", b"another")
    os.removexattr(source / "d", "user.of-directory")
    os.utime(source / "d" / "b", (3_000_000, 2_000_000))
    assert command(*words).code == 0
    assert kept(tmp_path / "d") == kept(source)
    assert int((tmp_path / "d" / "d" / "b").stat().st_atime) == 3_000_000


@pytest.mark.usefixtures("without")
def test_links_are_followed_and_syncs_undone(tmp_path: Path) -> None:
    source = made(tmp_path / "s")
    assert command("sync", "-q", "-L", "--keep-undo=1d", f"{source}/", f"{tmp_path}/d/").code == 0
    assert (tmp_path / "d" / "link").read_bytes() == b"d/b"
    (source / "a").write_bytes(b"changed")
    assert command("sync", "-q", "-L", "--keep-undo=1d", f"{source}/", f"{tmp_path}/d/").code == 0
    assert command("undo", f"{tmp_path}/d").code == 0
    assert (tmp_path / "d" / "a").read_bytes() == b"a"


@pytest.mark.usefixtures("without")
def test_a_call_by_name_moves_no_other_thread(tmp_path: Path) -> None:
    before = os.getcwd()
    (tmp_path / "f").write_bytes(b"1")
    fd = os.open(tmp_path, os.O_PATH)
    try:
        assert at_entry(fd, b"f", lambda path: os.stat(path, follow_symlinks=False).st_size) == 1
        assert in_directory(fd, os.getcwdb) == path_of_directory(fd) == os.fsencode(tmp_path.resolve())
        with pytest.raises(FileNotFoundError):
            at_entry(fd, b"missing", os.lstat)
    finally:
        os.close(fd)
    assert os.getcwd() == before


@pytest.mark.needs("unshare")
def test_where_it_is_really_not_mounted(tmp_path: Path) -> None:
    source = made(tmp_path / "s")
    script = 'umount -l /proc && exec "$@"'
    words = ("sync", "-q", "-X", "--keep-undo=1d", f"{source}/", f"{tmp_path}/d/")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *RDC, *words],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert os.getxattr(tmp_path / "d" / "a", "user.k") == b"a"


@pytest.mark.needs("unshare")
def test_what_cannot_be_linked_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 100)
        os.utime(tmp_path / name, (1_000_000, 2_000_000))
    done = subprocess.run(
        [
            *("unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"),
            *(*RDC, "dedupe", "--hardlink", "--apply", tmp_path),
        ],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "/proc is not mounted; mount it and run again" in done.stderr
    assert (tmp_path / "a").stat().st_ino != (tmp_path / "b").stat().st_ino
