"""Which file names become links to, and what happens where one file cannot take them all."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from rdc.duplicates.dedupe import Linker
from tests.support.running.deduping import TIME, Run, dedupe, linked, messages, seen
from tests.support.trees.loop_images import mounted

CONTENT = b"content" * 1000


def write(top: Path, *names: str) -> None:
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
        os.utime(path, ns=(TIME, TIME))


def link(top: Path, *words: str) -> Run:
    journals = top.parent / f"journals of {top.name}"
    number = len(list(journals.glob("*")))
    return dedupe("--hardlink", "--apply", f"--journal={journals}/{number}", *words, top)


def idle(top: Path) -> None:
    before = {path: os.stat(path).st_ino for path in top.rglob("*")}
    again = link(top)
    assert (again.code, again.summary["files"]) == (0, 0), again
    assert {path: os.stat(path).st_ino for path in top.rglob("*")} == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("known", [True, False], ids=["the most links known", "not known"])
def test_more_names_than_a_file_may_have(ext4: Path, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext4 allows 65,000 links. What does not fit becomes links to another file."""
    top = ext4 / "top"
    write(top, "a/first", *(f"b/{number:02}" for number in range(30)))
    for number in range(64_990):
        os.link(top / "a/first", top / "a" / f"{number}")
    if not known:
        monkeypatch.setattr(Linker, "_most", lambda self, inode: None)
    run = link(top)
    assert run.code == 0, run
    assert os.stat(top / "a/first").st_nlink == 65_000
    counts = sorted(os.stat(top / "b" / f"{number:02}").st_nlink for number in range(30))
    assert counts == [21] * 21 + [65_000] * 9
    assert all(path.read_bytes() == CONTENT for path in (top / "b").iterdir())
    idle(top)


def test_a_single_name_too_many_is_no_error(ext4: Path) -> None:
    top = ext4 / "top"
    write(top, "a/first", "b")
    for number in range(64_999):
        os.link(top / "a/first", top / "a" / f"{number}")
    for _ in range(2):
        run = link(top)
        assert (run.code, run.summary["files"]) == (0, 0)


def test_directories_that_no_link_leads_into(linking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As between two encryption policies or project quotas: EXDEV. Each side has a file of its own."""
    top = linking / "top"
    write(top, *(f"{side}/{number}" for side in "abc" for number in range(4)))
    write(top, "d/alone")
    os_link = os.link

    def refusing(source: bytes, name: bytes, *, dst_dir_fd: int) -> None:
        side = os.path.basename(os.path.dirname(os.readlink(source)))
        into = os.path.basename(os.fsencode(os.readlink(f"/proc/self/fd/{dst_dir_fd}")))
        if side != into:
            raise OSError(errno.EXDEV, "no")
        os_link(source, name, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr("rdc.files.names.leased_files._extension", None)
    monkeypatch.setattr(os, "link", refusing)
    run = link(top)
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (0, 9, 1), run
    assert "EXDEV" in messages(run)
    for side in "abc":
        assert linked(top, *(f"{side}/{number}" for number in range(4))) == 1
    idle(top)


@pytest.mark.parametrize("which", range(4))
def test_one_immutable_file_holds_up_nobody(linking: Path, which: int) -> None:
    top = linking / "top"
    write(top, *(f"{number}" for number in range(4)))
    subprocess.run(["chattr", "+i", top / f"{which}"], check=True)
    before = seen(top)
    run = link(top)
    subprocess.run(["chattr", "-i", top / f"{which}"], check=True)
    assert seen(top) == before
    assert linked(top, *(f"{number}" for number in range(4) if number != which)) == 1
    # A file that others cannot become names of is passed over; one that cannot change is named.
    assert (run.code, "(EPERM)" in messages(run)) == ((0, False) if which == 0 else (23, True))


def test_a_directory_that_may_not_be_changed_keeps_its_file(linking: Path) -> None:
    top = linking / "top"
    write(top, "a/file", "z/file", "y/file")
    subprocess.run(["chattr", "+i", top / "z"], check=True)
    run = link(top)
    again = link(top)
    subprocess.run(["chattr", "-i", top / "z"], check=True)
    assert (run.code, run.summary["files"], again.code) == (0, 2, 0)
    assert linked(top, "a/file", "z/file", "y/file") == 1


@pytest.mark.needs("mount")
def test_a_mount_that_is_read_only(linking: Path, tmp_path: Path) -> None:
    write(linking / "top", "a/file", "a/more")
    write(linking / "top", "z/file")
    view = tmp_path / "view"
    view.mkdir()
    subprocess.run(["mount", "--bind", "-o", "ro", linking / "top" / "z", view], check=True)
    try:
        run = dedupe("--hardlink", "--apply", f"--journal={tmp_path}/journal", linking / "top" / "a", view)
    finally:
        subprocess.run(["umount", "-l", view], check=True)
    assert run.code in (0, 23)
    assert linked(linking / "top", "a/file", "a/more") == 1


@pytest.mark.needs("ext4")
def test_links_to_several_files_are_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More links than one file may have on ext4, and back."""
    with mounted("ext4", tmp_path) as point:
        top = point / "top"
        write(top, *(f"{number}" for number in range(40)))
        before = seen(top)
        with monkeypatch.context() as patch:
            patch.setattr(Linker, "_most", lambda self, inode: 7)
            run = link(top)
        assert (run.code, run.summary["files"]) == (0, 40 - 6)
        assert max(os.stat(path).st_nlink for path in top.iterdir()) == 7
        (journal,) = (point / "journals of top").iterdir()
        assert dedupe("--undo", journal).summary["files"] == 34
        assert seen(top) == before
        assert linked(top, *before) == 40
