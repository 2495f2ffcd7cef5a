"""--files-from=:FILE: the remote side has the list. What it selects, what it costs, and what it may not
do."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rdc import limits
from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode, FileError, RdcError, UsageError
from rdc.library.trees import sync
from rdc.model.location import FarList, Location
from rdc.model.options import FileList
from rdc.model.selection import SelectedPaths
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Open, Role
from rdc.session.trees.selected_tree import open_listed
from tests.support.running.forced_command import forced
from tests.support.running.syncing import PSEUDO_SSH, RDC, Ended, Run, Way, command, shell
from tests.support.trees.trees import Tree, read_tree, tree, write_tree

SOURCE = tree({"a/f": b"1", "b/f": b"2", "b/s/h": b"3", "b/u/a": b"deep", "c": b"c", "d\nd": b"odd"})
FAR_WAYS = (Way.PUSH, Way.PULL)
OPTIONS = SyncOptions(relative=True, recursive=False, fsync=False)


def below(top: Path) -> Tree:
    """Without the directory itself, whose time is that of the run."""
    return {path: node for path, node in read_tree(top).items() if path}


def written(top: Path, listed: bytes = b"") -> Path:
    write_tree(top / "s", SOURCE)
    (top / "list").write_bytes(listed)
    return top


def run(top: Path, options: SyncOptions, way: Way, *, to: str = "d", far: str | None = None) -> Run:
    """`far`: the remote shell."""
    done = Run()
    done.report = sync(
        Location("far" if way is Way.PULL else None, os.fsencode(f"{top}/s")),
        Location("far" if way is Way.PUSH else None, os.fsencode(f"{top}/{to}/")),
        options,
        shell=shell() if far is None else shell(far),
        reporter=done.events.append,
        catalog=None,
    )
    return done


def listed_at(top: Path, *, nul: bool = False) -> SyncOptions:
    return replace(OPTIONS, files_from=FarList(os.fsencode(top / "list"), nul=nul))


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("nul", [True, False])
@pytest.mark.parametrize("way", FAR_WAYS)
def test_it_is_as_a_list_here(way: Way, nul: bool, relative: bool, tmp_path: Path) -> None:
    names = (b"a/f", b"b/./s/", b"/b/u", *((b"d\nd",) if nul else ()))
    end = b"\0" if nul else b"\n"
    written(tmp_path, end.join((*names, b"# a comment", b"")))
    here = replace(OPTIONS, files=FileList(names), relative=relative)
    there = replace(listed_at(tmp_path, nul=nul), relative=relative)
    one, other = run(tmp_path, here, way, to="one"), run(tmp_path, there, way, to="other")
    assert one.items == other.items != []
    assert below(tmp_path / "one") == below(tmp_path / "other")
    assert (one.done.exit, other.done.exit) == (ExitCode.OK, ExitCode.OK)
    assert other.done.round_trips == one.done.round_trips


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("way", FAR_WAYS)
def test_it_is_as_with_rsync(way: Way, tmp_path: Path) -> None:
    written(tmp_path, b"a/f\nb/./s/\nb/u\n")
    write_tree(tmp_path / "d", tree({"b/old": b"stays", "s/old": b"goes"}))
    write_tree(tmp_path / "r", tree({"b/old": b"stays", "s/old": b"goes"}))
    source = f"{'far:' if way is Way.PULL else ''}{tmp_path}/s/"
    words = ("-r", "--delete", "-e", str(PSEUDO_SSH), f"--files-from=:{tmp_path}/list", source)
    to = f"{'far:' if way is Way.PUSH else ''}{tmp_path}"
    subprocess.run(["rsync", "-a", *words, f"{to}/r/"], check=True, timeout=30)
    ended = command("sync", "--no-catalog", f"--remote-path={' '.join(RDC)}", *words, f"{to}/d/")
    assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert below(tmp_path / "d") == below(tmp_path / "r")


def test_many_names(tmp_path: Path) -> None:
    """More than one message has room for."""
    names = [b"n%05d" % number for number in range(40_000)]
    written(tmp_path, b"\n".join([*names, b"c"]))
    options = replace(listed_at(tmp_path), ignore_missing_args=True)
    assert run(tmp_path, options, Way.PUSH).done.files == 1
    assert (tmp_path / "d" / "c").read_bytes() == b"c"


def test_a_listing_is_of_what_it_names(tmp_path: Path) -> None:
    written(tmp_path, b"a/f\nb/u\n")
    words = ("-e", PSEUDO_SSH, f"--remote-path={' '.join(RDC)}", f"--files-from=:{tmp_path}/list")
    far = command("sync", "--list-only", *words, f"far:{tmp_path}/s")
    here = command("sync", "--list-only", f"--files-from={tmp_path}/list", f"{tmp_path}/s")
    assert [line.split()[-1] for line in far.out.splitlines()] == ["a", "a/f", "b", "b/u"]
    assert (far.code, far.out, far.err) == (here.code, here.out, "")


@pytest.mark.parametrize("way", FAR_WAYS)
@pytest.mark.parametrize(
    ("content", "times", "code", "said"),
    [
        (None, 1, ExitCode.FILE_IO, "list: no such file here"),
        ("directory", 1, ExitCode.FILE_IO, "found a directory"),
        ("fifo", 1, ExitCode.FILE_IO, "list: .*cannot open it for reading"),
        (b"a/../c", 1, ExitCode.USAGE, "a listed name cannot have '..' in it"),
        (b"a\0c", 1, ExitCode.USAGE, "has a NUL byte; -0"),
        (b"c\n", 1_100_000, ExitCode.USAGE, "1,100,000 lines"),
        (b"#", limits.SELECTED_LIST_BYTES + 1, ExitCode.USAGE, "bytes of paths"),
        (b"none", 1, ExitCode.PARTIAL, "none: no such file or directory"),
        (b"", 1, ExitCode.PARTIAL, "nothing|no "),
    ],
    ids=["missing", "directory", "fifo", "above", "nul", "lines", "bytes", "nothing", "empty"],
)
def test_a_bad_list_is_one_line(
    way: Way, content: bytes | str | None, times: int, code: ExitCode, said: str, tmp_path: Path
) -> None:
    written(tmp_path, content * times if isinstance(content, bytes) else b"")
    if not isinstance(content, bytes):
        (tmp_path / "list").unlink()
    if content == "directory":
        (tmp_path / "list").mkdir()
    if content == "fifo":
        os.mkfifo(tmp_path / "list")
    if content == b"":
        assert run(tmp_path, listed_at(tmp_path), way).items == []
        return
    with pytest.raises(RdcError, match=said) as caught:
        run(tmp_path, listed_at(tmp_path), way)
    assert caught.value.code is code
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "d").exists()


def test_a_served_directory_has_the_list(tmp_path: Path) -> None:
    """A key's root: the list is below it, and behind no link; where nothing may be read, it is refused."""
    written(tmp_path, b"c\n")
    write_tree(tmp_path / "top", tree({"list": b"c\n", "s/c": b"far"}))
    (tmp_path / "outside").mkdir()
    (tmp_path / "top" / "out").symlink_to(tmp_path)
    (tmp_path / "top" / "link").symlink_to("list")

    def push(name: str, *more: str) -> Ended:
        far = forced(tmp_path, f"--root={tmp_path}/top", *more)
        return command("sync", "-e", far, f"--files-from=:{name}", f"{tmp_path}/s", "h:d/")

    assert push("list").code == push("/list").code == 0
    assert set(read_tree(tmp_path / "top" / "d")) == {b"", b"c"}
    for name in ("out/list", "link", "../list", "none"):
        ended = push(name)
        assert (ended.code != 0, len(ended.complaints)) == (True, 1), ended
    refused = push("list", "--write-only")
    assert refused.code == ExitCode.REFUSED
    assert "is write-only: no list can be read from it" in refused.err
    far = forced(tmp_path, f"--root={tmp_path}/top", "--read-only")
    assert command("sync", "-e", far, "--files-from=:list", "h:s", tmp_path / "e").code == 0
    assert (tmp_path / "e" / "c").read_bytes() == b"far"


def test_the_far_list_selects_nothing_outside_of_src(tmp_path: Path) -> None:
    """A hostile destination: neither '..' nor a symlink leads out of what is pushed."""
    written(tmp_path, b"out/./secret\nc\n")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "s" / "out").symlink_to(tmp_path)
    done = run(tmp_path, listed_at(tmp_path), Way.PUSH)
    assert set(read_tree(tmp_path / "d")) == {b"", b"c"}
    assert [os.path.basename(each.path_bytes) for each in done.problems] == [b"secret"]
    for origin in (b"..", b"out", b"a/../.."):
        with pytest.raises(FileError):
            open_listed(bytes(tmp_path / "s"), [SelectedPaths(origin, (b"secret",))], OPTIONS)


def test_who_does_not_know_it_refuses_by_name() -> None:
    options = replace(OPTIONS, files_from=FarList(b"list", nul=True, relative=True))
    open_ = Open.asking(Role.SOURCE, b"s", bytes(16), options)
    assert "files_from" in (open_.needs or "").split(" ")
    with pytest.raises(RdcError, match="it is write-only: no list can be read from it"):
        granted_options(open_, Access("it", write_only=True))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--files-from=:list", "s", "d"), "neither SRC nor DST is there"),
        (("--files-from=x:list", "h:s", "d"), "has to be on the host of h:s"),
        (("--files-from=:", "h:s", "d"), "a file is needed after HOST:"),
        (("--files-from=::list", "h:s", "d"), "HOST::MODULE is rsync's daemon"),
        (("--files-from=rdc://h/other/list", "rdc://h/m/s", "d"), "has to be in the module of"),
        (("--files-from=:list", "h:s", "h:t", "d"), "--files-from takes one SRC"),
        (("--files-from=:list", "h:s", "k:d"), "the list has to be here: ssh HOST cat FILE"),
    ],
)
def test_another_host_is_refused(words: tuple[str, ...], said: str) -> None:
    ended = command("sync", *words)
    assert (ended.code, len(ended.err.splitlines())) == (ExitCode.USAGE, 1)
    assert said in ended.err


def test_one_list_and_a_far_side(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two lists"):
        replace(listed_at(tmp_path), files=FileList((b"a",)))
    with pytest.raises(UsageError, match="neither source nor destination is on another host"):
        run(tmp_path, listed_at(tmp_path), Way.HERE)
