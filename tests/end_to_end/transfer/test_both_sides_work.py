"""A side that begins long work has handed over what the other side can work on meanwhile.

Both ends run in turns in one thread. Each goes on until it waits or hands over, so that their steps come in
the order in which messages leave.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.limits import LIKELY_FILES
from rdc.protocol.messages import Role
from rdc.session.destination.conversation import DestinationTurn
from rdc.session.source.answers import FileAnswers, SourceSignatures
from rdc.session.source.tree_description import Description
from rdc.session.transfer.transfers import Transfers
from tests.support.running.delta_sync import edited, text
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.trees import LONG_AGO, File, describe, read_tree, tree, write_tree

LATER = LONG_AGO + 10**9
DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=lambda role: f"{role.name.lower()} dials")


def noted(patch: pytest.MonkeyPatch, steps: list[str], owner: type, method: str, step: str) -> None:
    """Adds `step` whenever this method is called."""
    original: Callable[..., object] = getattr(owner, method)

    def called(*arguments: object, **keywords: object) -> object:
        steps.append(step)
        return original(*arguments, **keywords)

    patch.setattr(owner, method, called)


def update(place: Path, files: int, changed: int, dialler: Role) -> None:
    """Syncs a tree of `files` files of which `changed` have new content and later times."""
    old: dict[str, bytes | File] = {f"d{i // 50}/f{i:04}": text(i, 2_000 + i % 700) for i in range(files)}
    new = dict(old)
    for i in range(changed):
        content = old[f"d{i // 50}/f{i:04}"]
        assert isinstance(content, bytes)
        new[f"d{i // 50}/f{i:04}"] = File(edited(content, 1), mtime_ns=LATER)
    source = write_tree(place / "source", tree(new))
    destination = write_tree(place / "destination", tree(old))
    sync_in_turns(source, destination, dialler=dialler)
    assert describe(read_tree(source), read_tree(destination)) == []


@DIALLERS
@pytest.mark.parametrize("files", [60, 400])  # by listing, and by manifest
def test_the_source_signs_likely_files_after_it_named_them(
    files: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    noted(monkeypatch, steps, Transfers, "described", "the destination knows them")
    noted(monkeypatch, steps, SourceSignatures, "sign_whole", "the source signs")
    update(tmp_path, files, 3, dialler)
    assert steps == ["the destination knows them", *["the source signs"] * 3]


@DIALLERS
@pytest.mark.parametrize(
    ("files", "asks"), [(60, "send_listing"), (1_300, "send_rows")], ids=["listing", "manifest"]
)
def test_the_destination_makes_its_parts_after_it_asked(
    files: int, asks: str, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    noted(monkeypatch, steps, Description, asks, "the source answers")
    noted(monkeypatch, steps, DestinationTurn, "build", "the destination makes its parts")
    update(tmp_path, files, 3, dialler)
    assert steps == ["the source answers", "the destination makes its parts"]


@DIALLERS
def test_many_likely_files_are_prepared_for_before_they_are_asked_for(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    noted(monkeypatch, steps, FileAnswers, "__init__", "the source makes what answers")
    noted(monkeypatch, steps, FileAnswers, "answer", "the source answers")
    update(tmp_path, 400, LIKELY_FILES + 4, dialler)
    assert steps[0] == "the source makes what answers"
    assert steps.count("the source makes what answers") == 1
