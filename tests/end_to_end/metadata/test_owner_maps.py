"""--usermap, --groupmap and --chown, beside rsync's."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.limits import OWNER_MAP_BYTES
from rdc.model.options import parse_owner_map
from rdc.model.sync import SyncOptions
from rdc.protocol.wire.options import ADDED_OPTIONS
from tests.support.running.beside_rsync import rsync
from tests.support.running.syncing import command
from tests.support.share import examples

IDS = (0, 1, 2, 7, 1000, 12_345, 65_534)
"""With names, and without."""

sources = st.sampled_from(
    [
        "",
        "*",
        "root",
        "daemon",
        "d*",
        "*n",
        "[b-d]??",
        "?*",
        "0",
        "7",
        "1000",
        "0-2",
        "2-99999",
        "no one",
        "b\\in",
    ]
)
targets = st.sampled_from(["root", "daemon", "bin", "4", "54321"])
maps = st.lists(st.builds("{}:{}".format, sources, targets), min_size=1, max_size=4).map(",".join)


def owned(top: Path) -> Path:
    """A directory with a file for each user and each group."""
    top.mkdir()
    for number in IDS:
        file = top / str(number)
        file.touch()
        os.chown(file, number, number)
    return top


def owners(top: Path) -> dict[str, tuple[int, int]]:
    found = {path.name: path.stat() for path in top.iterdir()}
    return {name: (stat.st_uid, stat.st_gid) for name, stat in found.items()}


@pytest.mark.needs("rsync")
@settings(max_examples=8, deadline=None)
@given(maps, maps)
@example(":7,daemon:4,*:bin", "*:daemon,0:4")
@example("0-2:4,0:5,1:6", "[a-z]*:4,:5")
def test_each_item_means_what_it_means_to_rsync(users: str, groups: str) -> None:
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        source = owned(Path(top, "source"))
        words = [f"--usermap={users}", f"--groupmap={groups}", f"{source}/"]
        assert rsync(*words, Path(top, "theirs"))[0] == 0
        assert command("sync", "--no-fsync", "--no-catalog", *words, Path(top, "ours")).code == 0
        assert owners(Path(top, "ours")) == owners(Path(top, "theirs"))


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("word", ["daemon:bin", "daemon", "daemon:", ":bin", "7:4"])
def test_chown_means_what_it_means_to_rsync(word: str, tmp_path: Path) -> None:
    source = owned(tmp_path / "source")
    assert rsync(f"--chown={word}", f"{source}/", tmp_path / "theirs")[0] == 0
    assert command("sync", "--no-fsync", f"--chown={word}", f"{source}/", tmp_path / "ours").code == 0
    assert owners(tmp_path / "ours") == owners(tmp_path / "theirs")


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    "words",
    [
        ["--usermap=daemon"],
        ["--usermap=:"],
        ["--usermap="],
        ["--groupmap=1x:2"],
        ["--groupmap=1-2-3:2"],
        ["--groupmap=1-:2"],
        ["--usermap=a:b,"],
        ["--usermap=a:b", "--usermap=c:d"],
        ["--usermap=a:b", "--chown=c"],
        ["--groupmap=a:b", "--chown=:c"],
    ],
)
def test_what_rsync_refuses_is_refused_by_name(words: list[str], tmp_path: Path) -> None:
    argv = ["rsync", "-a", *words, f"{tmp_path}/", str(tmp_path.parent / "none")]
    assert subprocess.run(argv, capture_output=True, check=False).returncode != 0
    ended = command("sync", *words, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert words[0].partition("=")[0] in ended.err or "--chown" in ended.err
    assert not (tmp_path.parent / "none").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--usermap=*:no-such-user"],
        ["--chown=:no-such-group"],
        ["--usermap=9-3:1"],
        ["--usermap=a:2x"],
        ["--usermap=1:4294967295"],
        ["--chown="],
        ["--chown=a,b"],
        ["--no-numeric-ids", "--acls"],
        ["--chown=root", "--acls"],
        ["--chown=root", "--no-owner"],
        [f"--usermap={'a:1,' * OWNER_MAP_BYTES}a:1"],
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(words: list[str], tmp_path: Path) -> None:
    ended = command("sync", *words, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert not (tmp_path.parent / "none").exists()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--chown=a:b:c", "--chown=a:b:c: expected USER:GROUP, USER or :GROUP"),
        ("--chown=:b:c", "--chown=:b:c: expected USER:GROUP, USER or :GROUP"),
        ("--chown=no-such-user", "--chown or --usermap: *:no-such-user: DST has no user"),
        ("--chown=:no-such-group", "--chown or --groupmap: *:no-such-group: DST has no group"),
        ("--chown=4294967295", "--chown=4294967295: "),
        ("--usermap=*:no-such-user,1:2", "rdc: --usermap: *:no-such-user: DST has no user"),
    ],
)
def test_the_option_that_was_given_is_blamed(word: str, said: str, tmp_path: Path) -> None:
    ended = command("sync", word, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert said in ended.err
    assert ("map" in word) or "rdc: --usermap" not in ended.err


@pytest.mark.parametrize("raw", [b"", b"a", b"a:", b"\0:1", b"1-0:1", b"*" * OWNER_MAP_BYTES + b":1", "a:1"])
def test_a_hostile_map_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ADDED_OPTIONS["usermap"].unpack(raw)


@settings(max_examples=examples(40))
@given(st.binary(max_size=12) | st.text("0123456789-:,*[?ab", max_size=12).map(str.encode))
def test_any_text_is_parsed_or_refused(text: bytes) -> None:
    try:
        rules = parse_owner_map(text)
    except ValueError:
        return
    assert b",".join(rule.item for rule in rules) == text
    assert SyncOptions(usermap=text).maps_owners
