"""Today's rdc reads what an rdc of each version of the protocol wrote, and writes what that rdc read.

A recorded end takes part in the place of the other side. scripts/record_transcripts.py recorded it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.protocol.connection import DIALECT
from rdc.protocol.messages import Role
from tests.support.project_paths import TOP
from tests.support.trees.trees import File, Tree, describe, read_tree
from tests.support.wire.recorded_scenes import NEW, OLD, SCENES, letters, play
from tests.support.wire.transcripts import Line, read_transcript

KEPT = TOP / "fixtures" / "transcripts"
VERSIONS = range(DIALECT.oldest, DIALECT.newest + 1)
SESSIONS = [(name, dialler) for name, scene in SCENES.items() for dialler in scene.diallers]


@pytest.mark.parametrize("live", [True, False], ids=["dials", "answers"])
@pytest.mark.parametrize(("name", "dialler"), SESSIONS, ids=lambda part: str(getattr(part, "name", part)))
@pytest.mark.parametrize("version", VERSIONS)
def test_today_s_rdc_in_the_place_of_one_end(
    version: int, name: str, dialler: Role, live: bool, tmp_path: Path
) -> None:
    lines = read_transcript(KEPT / str(version) / f"{name}-{dialler.name.lower()}.txt")
    play(SCENES[name], dialler, tmp_path, lines=lines, live=live)
    if (dialler is Role.DESTINATION) is live:
        check_destination(name, dialler, tmp_path)


def check_destination(name: str, dialler: Role, place: Path) -> None:
    """It is what the session makes of it."""
    found, scene = read_tree(place / "destination"), SCENES[name]
    if name in {"trial", "check", "missing"}:
        assert scene.held is not None
        assert describe(scene.held, found) == []
    elif name == "added":
        assert contents(found).items() > contents(scene.wanted).items()
        assert found[b"short~"] == OLD[b"short"]
        assert {node.mode for path, node in found.items() if isinstance(node, File) and path in NEW} == {
            0o640
        }
    elif name == "watch" and dialler is Role.SOURCE:
        assert contents(found) == {
            **{path: content for path, content in contents(NEW).items() if path not in GONE_LATER},
            b"short": b"newer",
            b"moved again": contents(NEW)[b"sub/deep/moved"],
            b"more/file": letters(3, 3_000),
        }
    else:
        assert describe(read_tree(place / "source"), found) == []


GONE_LATER = {b"sub/tool", b"sub/deep/moved"}


def contents(nodes: Tree) -> dict[bytes, bytes]:
    return {path: node.content for path, node in nodes.items() if isinstance(node, File)}


def test_the_sessions_of_each_version_are_recorded() -> None:
    names = {f"{name}-{dialler.name.lower()}.txt" for name, dialler in SESSIONS}
    assert {place.name for place in KEPT.iterdir()} == {str(version) for version in VERSIONS}
    for place in KEPT.iterdir():
        assert {path.name for path in place.iterdir()} == names


def test_the_newest_are_those_that_are_recorded_today(tmp_path: Path) -> None:
    """Also: a session depends on nothing but its scene."""
    name, dialler = "update", Role.SOURCE
    place = KEPT / str(DIALECT.newest) / f"{name}-{dialler.name.lower()}.txt"
    assert play(SCENES[name], dialler, tmp_path) == read_transcript(place)


@pytest.mark.parametrize("live", [True, False], ids=["dials", "answers"])
def test_another_byte_is_noticed(live: bool, tmp_path: Path) -> None:
    lines = read_transcript(KEPT / str(DIALECT.newest) / "update-source.txt")
    row = next(row for row in range(6, len(lines)) if lines[row].by_dialler is live)
    data = bytearray(lines[row].data)
    data[-1] ^= 1
    lines[row] = Line(live, bytes(data))
    with pytest.raises((AssertionError, ValueError)):  # it may say nothing that can be read any more
        play(SCENES["update"], Role.SOURCE, tmp_path, lines=lines, live=live)
