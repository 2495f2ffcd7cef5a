"""Result files: replaced whole or not at all, only by their own kind, and never through others' links."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError, RdcError, UsageError
from rdc.files.base import taking_names
from rdc.files.base.taking_names import take_free_name
from rdc.files.own import output_file
from rdc.files.own.output_file import (
    Claims,
    ExistingFile,
    Output,
    OutputKind,
    claim_log,
    claim_outputs,
    write_output,
)
from rdc.model.entries import PackedInodes
from tests.support.share import examples

KIND = OutputKind("a result", lambda head: head.startswith(b"RESULT"))
OTHER_USER = 12_345


def output(path: Path | bytes | str, *, overwrite: bool = False) -> Output:
    return Output(os.fsencode(path), KIND, overwrite)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"RESULT before")
    before = target.stat().st_ino
    write_output(output(target), [b"a", b"", b"bc"])
    assert target.read_bytes() == b"abc" and target.stat().st_ino != before
    assert os.listdir(tmp_path) == ["result"]


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"RESULT before")

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(RdcError, match="No space"):
        write_output(output(target), broken())
    assert target.read_bytes() == b"RESULT before" and os.listdir(tmp_path) == ["result"]


@pytest.mark.parametrize("content", [b"", b"RESULT", b"RESULT and more"])
def test_a_file_of_its_kind_or_without_content_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result").write_bytes(content)
    claims = claim_outputs([output(tmp_path / "result")])
    assert len(claims.existing) == 1
    write_output(output(tmp_path / "result"), [b"new"])
    assert (tmp_path / "result").read_bytes() == b"new"


@pytest.mark.parametrize("content", [b"R", b"a letter", b"\0RESULT", b" "])
def test_any_other_file_stays_unless_it_may_be_replaced(tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "result"
    target.write_bytes(content)
    for attempt in (lambda: claim_outputs([output(target)]), lambda: write_output(output(target), [b"new"])):
        with pytest.raises(UsageError, match="expected a result, or nothing, found another file") as caught:
            attempt()
        assert caught.value.code is ExitCode.USAGE
    assert target.read_bytes() == content and os.listdir(tmp_path) == ["result"]
    write_output(output(target, overwrite=True), [b"new"])
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("begins", [KIND.begins, None])
def test_only_an_option_that_there_is_is_advised(tmp_path: Path, begins: Any) -> None:
    (tmp_path / "notes").write_text("a letter")
    path, kind = os.fsencode(tmp_path / "notes"), OutputKind("a result", begins)
    with pytest.raises(UsageError, match=r"with --overwrite$"):
        claim_outputs([Output(path, kind, overwrite=False)])
    with pytest.raises(UsageError, match=r"move (it|this one) away$"):
        claim_outputs([Output(path, kind)])


def test_a_file_made_while_the_result_was_written_stays(tmp_path: Path) -> None:
    target = tmp_path / "result"

    def parts() -> Iterator[bytes]:
        target.write_bytes(b"a letter")
        yield b"new"

    with pytest.raises(UsageError, match="found another file"):
        write_output(output(target), parts())
    assert target.read_bytes() == b"a letter" and os.listdir(tmp_path) == ["result"]


def test_a_file_made_right_before_the_rename_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result"

    def late(old: bytes, new: bytes, directory: int) -> None:
        target.write_bytes(b"a letter")
        take_free_name(old, new, directory)

    monkeypatch.setattr(output_file, "take_free_name", late)
    with pytest.raises(UsageError, match="found another file"):
        write_output(output(target), [b"new"])
    assert target.read_bytes() == b"a letter" and os.listdir(tmp_path) == ["result"]


def test_a_file_system_that_replaces_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking_names, "hold_free_name", lambda *_: False)
    write_output(output(tmp_path / "result"), [b"new"])
    assert (tmp_path / "result").read_bytes() == b"new"


def test_an_own_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/result")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    for content in (b"RESULT", b"newer"):
        write_output(output(tmp_path / "again"), [content])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "result").read_bytes() == content
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(RdcError, match="symbolic link"):
        write_output(output(tmp_path / "one"), [b""])


def test_a_path_of_any_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "up").symlink_to("../a/./b//")
    monkeypatch.chdir(tmp_path / "a")
    for number, form in enumerate(("b/../x", "./up/x", "up/../../a//x", f"{tmp_path}/a/up/../x", "x")):
        write_output(output(form, overwrite=True), [b"%d" % number])
        assert Path(form).read_bytes() == b"%d" % number
        assert os.path.realpath(form) in {f"{tmp_path}/a/x", f"{tmp_path}/a/b/x"}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")


@needs_root
@pytest.mark.parametrize("sticky", [0o1777, 0o777, 0o755])
@pytest.mark.parametrize("at", ["the end", "a directory"])
def test_a_link_of_another_user_is_not_followed(tmp_path: Path, sticky: int, at: str) -> None:
    victim = tmp_path / "home" / "result"
    victim.parent.mkdir()
    victim.write_bytes(b"RESULT of root")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(sticky)
    if at == "the end":
        (shared / "planted").symlink_to(victim)
        path = shared / "planted"
    else:
        (shared / "planted").symlink_to(victim.parent)
        path = shared / "planted" / "result"
    os.lchown(shared / "planted", OTHER_USER, OTHER_USER)
    for attempt in (
        lambda: claim_outputs([output(path, overwrite=True)]),
        lambda: write_output(output(path, overwrite=True), [b"new"]),
    ):
        with pytest.raises(UsageError, match=f"a symbolic link of user {OTHER_USER}"):
            attempt()
    assert victim.read_bytes() == b"RESULT of root" and os.listdir(victim.parent) == ["result"]
    os.lchown(shared / "planted", 0, 0)
    write_output(output(path), [b"new"])
    assert victim.read_bytes() == b"new"


@needs_root
def test_a_pipe_of_another_user_in_a_shared_directory_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.chown(tmp_path / "pipe", OTHER_USER, OTHER_USER)
    tmp_path.chmod(0o1777)
    with pytest.raises(UsageError, match="a pipe or device of user"):
        write_output(output(tmp_path / "pipe"), [b"secret"])


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_output(output(pipe), [b"through ", b"it"])
    reader.join()
    assert read == [b"through it"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "full"
    os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 7))
    with pytest.raises(RdcError, match="No space") as caught:
        write_output(output(device), [b"x"])
    assert caught.value.code is ExitCode.FILE_IO
    assert stat.S_ISCHR(device.lstat().st_mode)


@pytest.mark.parametrize("form", ["/proc/self/fd/%d", "/dev/fd/%d"])
def test_a_descriptor_by_its_name(tmp_path: Path, form: str) -> None:
    reading, writing = os.pipe()
    try:
        write_output(output(form % writing), [b"shown"])
        assert os.read(reading, 10) == b"shown"
    finally:
        os.close(reading)
        os.close(writing)
    # A file that a shell opened is continued, and keeps its name.
    fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    try:
        os.write(fd, b"before ")
        before = (tmp_path / "out").stat().st_ino
        (tmp_path / "link").symlink_to(form % fd)
        write_output(output(tmp_path / "link"), [b"the result"])
        os.write(fd, b" after")
    finally:
        os.close(fd)
    assert (tmp_path / "out").read_bytes() == b"before the result after"
    assert (tmp_path / "out").stat().st_ino == before
    with pytest.raises(RdcError, match="cannot write it"):
        write_output(output("/proc/self/fd/987654"), [b"x"])


@pytest.mark.parametrize("name", ["", "none/result", "nul\0", "file/result", "d/"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "d").mkdir()
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with pytest.raises(FileError, match="cannot write it"):
        write_output(output(path), [b"x"])
    assert sorted(os.listdir(tmp_path)) == ["d", "file"]


def test_a_place_for_a_result_is_checked_without_making_anything(tmp_path: Path) -> None:
    assert claim_outputs([output(tmp_path / "new"), output("/dev/null"), output("/dev/null")]) == Claims()
    assert os.listdir(tmp_path) == []
    for name, reason in ((".", "found a directory"), ("none/x", "is not there"), ("/proc/x", "no file")):
        with pytest.raises(FileError, match=reason) as caught:
            claim_outputs([output(tmp_path / name)])
        assert caught.value.code is ExitCode.FILE_IO
    (tmp_path / "link").symlink_to("new")
    with pytest.raises(UsageError, match="two results cannot go to one file"):
        claim_outputs([output(tmp_path / "link"), output(tmp_path / "new")])


def test_a_file_that_is_read_is_known_by_every_name(tmp_path: Path) -> None:
    result = tmp_path / "result"
    result.write_bytes(b"RESULT")
    os.link(result, tmp_path / "other")
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "equal").write_bytes(b"RESULT")
    for claims in (
        claim_outputs([output(result, overwrite=True)]),
        claim_outputs([output(tmp_path / "link")]),
        claim_log(os.fsencode(result)),
    ):
        claims.check_named([os.fsencode(tmp_path / name) for name in ("equal", "missing", ".")])
        for name in ("result", "other", "link"):
            with pytest.raises(UsageError, match="this run would read it"):
                claims.check_named([os.fsencode(tmp_path / name)])
        with pytest.raises(UsageError, match="this run would read it"):
            claims.check_below([os.fsencode(tmp_path)])
        claims.check_below([os.fsencode(tmp_path / "equal")])
    assert claim_log(b"/none/log") == Claims()


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 255, 256, 65_536, 2**63])), max_size=20))
def test_rows_of_a_directory(rows: list[tuple[int, int]]) -> None:
    """Bytes of two neighbouring numbers may look like a third one."""
    devices = b"".join(device.to_bytes(8, "little") for device, _ in rows)
    inodes = b"".join(inode.to_bytes(8, "little") for _, inode in rows)
    packed = PackedInodes(devices, inodes, bytes(4 * len(rows)), bytes(8 * len(rows)), bytes(8 * len(rows)))
    for device in range(3):
        for inode in (0, 1, 256, 2**63):
            claims = Claims((ExistingFile(device, inode, b"result"),))
            if (device, inode) in rows:
                with pytest.raises(UsageError, match=f"as row {rows.index((device, inode))};") as caught:
                    claims.check_rows(packed, lambda row: b"row %d;" % row)
                assert caught.value.code is ExitCode.USAGE
            else:
                claims.check_rows(packed, lambda row: b"row %d;" % row)
