"""Options between two other hosts: each does what it does from here, or is refused by its name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode
from tests.support.relay.two_hosts import between
from tests.support.running.on_terminal import on_terminal
from tests.support.running.syncing import FAR, PSEUDO_SSH, command, shell
from tests.support.trees.trees import File, Link, read_tree, tree, write_tree

SOURCE = tree(
    {
        "a": b"a" * 2000,
        "b.o": b"object",
        "d/c": File(b"c" * 5000, 0o640, 10**18),
        "d/link": Link(b"../a"),
        "d/.rules": b"- hidden\n",
        "d/hidden": b"hidden",
    }
)
BEFORE = tree({"a": b"old", "gone": b"gone", "e/f": b"f", "b.o": b"another"})

ALIKE = (
    ["--delete", "--exclude=*.o"],
    ["--delete", "--delete-excluded", "--exclude=*.o"],
    ["--delete", "--filter=: .rules"],
    ["-c", "--existing"],
    ["--ignore-existing", "-u"],
    ["--chmod=F600,D700", "-O", "-J"],
    ["-H", "-A", "-X", "-U"],
    ["-b", "--backup-dir=../saved", "--delete"],
    ["--size-only", "--max-size=3000"],
    ["--inplace", "-S"],
    ["--delay-updates", "--partial-dir=.part"],
    ["--max-delete=1", "--delete"],
    ["--guard=1%", "--delete"],
    ["--chown=1:1", "--no-numeric-ids"],
    ["-L", "-x", "-I", "-W", "-y"],
    ["--keep-undo=1G", "--delete"],
    ["-z", "-K", "--mkpath", "--safe-links"],
    ["--copy-dest=../other", "--prune-empty-dirs"],
)


def plain(top: Path) -> dict[bytes, object]:
    """The tree without times that no run set, and without what an undo needs, which has random names."""
    tree_ = {path: node for path, node in read_tree(top).items() if b".rdc-undo" not in path}
    return {
        path: node if isinstance(node, File) else replace(node, mtime_ns=0) for path, node in tree_.items()
    }


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("options", ALIKE, ids=" ".join)
def test_as_from_here(options: list[str], tmp_path: Path) -> None:
    """The same tree, the same lines and the same exit code as when the source is here."""
    write_tree(tmp_path / "one", SOURCE)
    os.link(tmp_path / "one/a", tmp_path / "one/hard")
    os.setxattr(tmp_path / "one/d", "user.a", b"1")
    ended = []
    for name, source in (("pushed", f"{tmp_path}/one/"), ("relayed", f"a:{tmp_path}/one/")):
        (tmp_path / name).mkdir()
        write_tree(tmp_path / name / "two", BEFORE)
        write_tree(tmp_path / name / "other", SOURCE)
        ended.append(between("-i", *options, source, f"b:{tmp_path}/{name}/two"))
    pushed, relayed = ended
    assert pushed.code == relayed.code, (pushed, relayed)
    assert pushed.out.splitlines() == relayed.out.splitlines()
    said = [line.replace("/pushed/", "/relayed/") + " (on b)" for line in pushed.complaints]
    assert said == relayed.complaints
    counts = [each.err.splitlines()[-1].partition(";")[0] for each in ended]
    assert counts[0] == counts[1]
    assert plain(tmp_path / "pushed") == plain(tmp_path / "relayed")


@pytest.mark.parametrize(
    "option", ["--munge-links", "--fake-super", "--max-memory=1G", "--no-compress"], ids=str
)
def test_what_is_about_this_end(option: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "one", SOURCE)
    ended = between(option, f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert option.partition("=")[0] in ended.complaints[0]
    assert not (tmp_path / "two").exists()


def test_several_sources_of_one_host(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", SOURCE)
    write_tree(tmp_path / "more", tree({"a": b"another", "z": b"z"}))
    words = (f"a:{tmp_path}/one/", f":{tmp_path}/more/", f"b:{tmp_path}/two")
    assert between(*words).code == ExitCode.OK
    assert (tmp_path / "two/a").read_bytes() == b"a" * 2000
    assert (tmp_path / "two/z").read_bytes() == b"z"


def test_sources_of_two_hosts_are_refused(tmp_path: Path) -> None:
    ended = between(f"a:{tmp_path}/one/", f"c:{tmp_path}/more/", f"b:{tmp_path}/two")
    assert ended.code == ExitCode.USAGE
    assert "on two hosts" in ended.complaints[0]


def test_a_list_of_here(tmp_path: Path) -> None:
    """--files-from is read on this machine, and -R keeps the paths."""
    write_tree(tmp_path / "one", SOURCE)
    (tmp_path / "list").write_bytes(b"d/c\nnone\n")
    ended = between(f"--files-from={tmp_path}/list", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert ended.code == ExitCode.PARTIAL
    assert "none" in ended.complaints[0] and ended.complaints[0].endswith("(on a)")
    assert {path for path in read_tree(tmp_path / "two") if path} == {b"d", b"d/c"}
    ended = between("-R", f"a:{tmp_path}/./one/d/", f"b:{tmp_path}/three")
    assert ended.code == ExitCode.OK
    assert (tmp_path / "three/one/d/c").exists()


def test_sources_go_once_they_have_arrived(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", SOURCE)
    ended = between("--remove-source-files", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert set(read_tree(tmp_path / "one")) == {b"", b"d"}
    assert (tmp_path / "two/d/c").read_bytes() == b"c" * 5000


def test_a_guard_asks_on_this_terminal(tmp_path: Path) -> None:
    """What the first run did not do, the second one does, if the answer is yes."""
    write_tree(tmp_path / "one", tree({"f": b"f"}))
    write_tree(tmp_path / "two", tree({f"{n}": b"x" for n in range(150)}))
    words = ("--delete", "-e", str(PSEUDO_SSH), "--remote-path", FAR)
    code, said = on_terminal(b"y\n", *words, f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert code == ExitCode.OK and "[y/N]" in said and "(on b)" in said, said
    assert set(read_tree(tmp_path / "two")) == {b"", b"f"}


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a:one/", "a:one", "are the same"),
        ("a:one", "a:.", "are the same"),
        ("a:one/", "a:one/two/", "copied into itself"),
        ("a:./one/../one", "a:one/two/", "copied into itself"),
        ("a:one/two/", "a:one", "--delete would remove it"),
        ("rdc://a/m/one/", "rdc://a/m/one/two", "copied into itself"),
    ],
)
def test_one_tree_in_the_other(source: str, target: str, reason: str) -> None:
    ended = command("sync", "--delete", source, target)
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert reason in ended.complaints[0]


def test_the_function(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", SOURCE)
    events: list[object] = []
    source, target = (
        rdc.Location(host, f"{tmp_path}/{path}".encode()) for host, path in (("a", "one/"), ("b", "two"))
    )
    report = rdc.sync(source, target, shell=shell(), reporter=events.append)
    assert (report.exit, report.files, report.changed) == (ExitCode.OK, 5, 8)
    assert report.bytes_sent + report.bytes_received == sum(cost.bytes for cost in report.by_kind)
    assert events
