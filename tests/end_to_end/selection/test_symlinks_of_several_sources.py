"""-L, -k and --copy-unsafe-links with several SRC, -R, -d and --files-from: beside rsync's, and confined."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.library.trees import sync
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from tests.support.oracle.cases import Case
from tests.support.oracle.comparison import differences
from tests.support.oracle.operands import operands
from tests.support.oracle.options import option_words
from tests.support.oracle.scenes import Scene, scenes
from tests.support.running.beside_rsync import rsync
from tests.support.running.forced_command import forced
from tests.support.running.syncing import PSEUDO_SSH, RDC, Way, command, shell
from tests.support.share import examples
from tests.support.trees.trees import File, Link, Tree, read_tree, tree, write_tree

OUTSIDE = tree({"deep/x": b"x", "y": b"yy"})
SOURCE = tree(
    {
        "a/f": b"1",
        "a/sub/g": b"22",
        "a/to-file": Link(b"f"),
        "a/out": Link(b"../../outside/y"),
        "b/h": b"333",
        "b/sub/q": b"4444",
        "b/to-dir": Link(b"../a/sub"),
        "b/out": Link(b"../../outside"),
        "b/to-file": Link(b"h"),
        "to-a": Link(b"a"),
        "away": Link(b"../outside"),
    }
)
LISTED = "a/to-file\nto-a\nb/./out\n"
CHOICES = ("-L", "-k", "--copy-unsafe-links")


def written(top: Path) -> Path:
    write_tree(top / "outside", OUTSIDE)
    write_tree(top / "s", SOURCE)
    (top / "list").write_text(LISTED)
    return top


def below(top: Path) -> Tree:
    return {path: node for path, node in read_tree(top).items() if path}


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(
    "taken",
    [
        ("s/a", "s/b"),
        ("s/a/", "s/b/"),
        ("s/to-a", "s/away"),
        ("s/to-a/", "s/b"),
        ("s/b/to-dir", "s/a"),
        ("-R", "s/a", "s/./b", "s/away"),
        ("-r", "--files-from=list", "s"),
        ("--files-from=list", "s"),
        ("-d", "--no-r", "s/b/"),
        ("--delete", "s/b/", "s/a/"),
    ],
    ids=" ".join,
)
def test_it_is_as_with_rsync(
    taken: tuple[str, ...], choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written(tmp_path))
    for name in ("r", "d"):
        write_tree(tmp_path / name, tree({"old": b"old", "sub": File(b"in the way", 0o600, 1)}))
    code, theirs = rsync("-i", choice, *taken, "r/")
    ended = command("sync", "-i", choice, *taken, "d/")
    assert (ended.code, sorted(ended.out.splitlines())) == (code, theirs)
    assert below(tmp_path / "d") == below(tmp_path / "r")


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("more", [(), ("--ignore-missing-args",), ("--delete-missing-args",)])
@pytest.mark.parametrize("target", ["nothing", "n" * 300], ids=["missing", "too long"])
def test_a_selected_link_to_nothing_is_missing(target: str, more: tuple[str, ...], tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "s" / "b" / "link").symlink_to(target)
    (tmp_path / "list").write_text("b/link\na/f\n")
    words = ("-L", *more, f"--files-from={tmp_path}/list", f"{tmp_path}/s/")
    for name in ("r", "d"):
        write_tree(tmp_path / name, tree({"b/link": b"1"}))
    code, _ = rsync(*words, f"{tmp_path}/r/")
    assert command("sync", *words, f"{tmp_path}/d/").code == code
    assert set(below(tmp_path / "d")) == set(below(tmp_path / "r"))
    assert (code == ExitCode.OK) is (target == "nothing" and bool(more))
    goes = target == "nothing" and "--delete-missing-args" in more
    assert (b"b/link" in below(tmp_path / "d")) != goes


@pytest.mark.parametrize("choice", CHOICES)
def test_it_is_the_same_from_afar(choice: str, tmp_path: Path) -> None:
    written(tmp_path)
    source = f"{tmp_path}/s"
    assert command("sync", choice, f"{source}/to-a", f"{source}/b", f"{tmp_path}/here/").code == 0
    words = ("-e", PSEUDO_SSH, f"--remote-path={' '.join(RDC)}", choice)
    far = command("sync", *words, f"h:{source}/to-a", f":{source}/b", f"{tmp_path}/far/")
    push = command("sync", *words, f"{source}/to-a", f"{source}/b", f"h:{tmp_path}/push/")
    assert (far.code, push.code) == (ExitCode.OK, ExitCode.OK)
    assert below(tmp_path / "here") == below(tmp_path / "far") == below(tmp_path / "push")


@pytest.mark.needs("rsync")
@settings(max_examples=examples(12), deadline=None)
@given(scenes(specials=False), option_words(), st.sampled_from(CHOICES), st.data())
def test_random_operands_end_as_with_rsync(
    scene: Scene, words: tuple[str, ...], choice: str, data: st.DataObject
) -> None:
    taken = data.draw(operands(scene.source.tree))
    assert differences(Case(scene, (*words, choice), taken)) == []


@pytest.mark.parametrize("way", Way)
def test_what_leads_to_nothing_back_or_to_dst_is_named(way: Way, tmp_path: Path) -> None:
    top = written(tmp_path)
    (top / "s" / "a" / "back").symlink_to("..")
    (top / "s" / "b" / "nothing").symlink_to("none")
    (top / "d").mkdir()
    here = way is Way.HERE
    if here:
        (top / "s" / "b" / "to-dst").symlink_to(top / "d")
    events: list[Event] = []
    sync(
        [Location("far" if way is Way.PULL else None, os.fsencode(f"{top}/s/{name}")) for name in "ab"],
        Location("far" if way is Way.PUSH else None, os.fsencode(f"{top}/d/")),
        SyncOptions(copy_links=True, fsync=False),
        shell=shell(),
        reporter=events.append,
        catalog=None,
    )
    problems = {event.path_bytes: event for event in events if isinstance(event, Problem) and event.code}
    assert set(problems) == {b"a/back", b"b/nothing", *((b"b/to-dst",) if here else ())}
    assert all(each.code is ExitCode.PARTIAL for each in problems.values())
    found = below(tmp_path / "d")
    assert found[b"b/out/deep/x"] == OUTSIDE[b"deep/x"]
    assert not {b"a/back", b"b/nothing", b"b/to-dst"} & set(found)


def test_a_confined_source_follows_within_alone(tmp_path: Path) -> None:
    """A key's root: what leads out of it is named and left, also if it is a SRC itself."""
    top = written(tmp_path)
    far = forced(top, f"--root={top}/s", "--read-only")
    ended = command("sync", "-e", far, "-L", "h:/a", ":b", ":away", ":to-a", top / "d")
    assert ended.code == ExitCode.PARTIAL
    named = {line.split(": ")[1] for line in ended.complaints if "leads out of the served directory" in line}
    assert named == {"a/out", "b/out", "away", "to-a/out"}
    found = below(top / "d")
    assert found[b"to-a/sub/g"].content == found[b"b/to-dir/g"].content == b"22"  # type: ignore[union-attr] # both are files
    assert not any(isinstance(node, File) and node.content in {b"x", b"yy"} for node in found.values())
