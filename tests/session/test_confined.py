"""A peer confined to a directory touches nothing outside, and inside nothing that its rules forbid."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdc.daemon import access
from rdc.daemon.access import Access
from rdc.files.base import directory_descriptors as directory
from rdc.files.root import followed_links
from rdc.lean.records import replace
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Open
from rdc.session.destination.change_turn import ChangeTurn
from rdc.session.destination.entry_changes import AllowedChanges
from rdc.session.trees import destination_root, sites
from tests.support.wire.hostile_requests import ACCESSES, HostileRequests

REQUESTS = 1_000

Patch = Callable[[pytest.MonkeyPatch], None]


def test_hostile_requests(tmp_path: Path) -> None:
    requests = HostileRequests(tmp_path / "place")
    for seed in range(REQUESTS):
        requests.request(seed)
    # They are no harmless ones: where it is allowed, much is done.
    assert requests.changed > REQUESTS // 20
    assert min(requests.done[what] for what in ("deleted", "replaced", "made", "made, append-only")) > 1
    for allowed in ACCESSES:
        assert requests.ends[f"{allowed} REFUSED"] > 1, allowed
        assert requests.ends[f"{allowed} OK"] > 1, allowed


# With any one check gone, the same requests find it


def _grant_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "granted_options", lambda open_, access: open_.options)


def _forget(**rules: Any) -> Patch:
    granted = access.granted_options

    def forget(monkeypatch: pytest.MonkeyPatch) -> None:
        def without(open_: Any, given: Access) -> Any:
            return granted(open_, replace(given, **rules))

        monkeypatch.setattr(access, "granted_options", without)

    return forget


def _follow_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def following(self: Any, path: bytes) -> directory.Directory:
        return directory.Directory(os.open(path, os.O_PATH | os.O_DIRECTORY, dir_fd=self._root.fd))

    monkeypatch.setattr(directory.DirectoryCache, "_open", following)


def _change_what_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "MadeEntries", lambda: None)


def _rename_at_will(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeTurn, "_may_go", lambda self, path, kind: True)


def _name_any_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (destination_root, sites):
        monkeypatch.setattr(module, "lies_in_own_directory", lambda fd: False)
    monkeypatch.setattr(destination_root, "refused_component", lambda path: None)
    monkeypatch.setattr(sites, "stands_for_reserved", lambda name: False)


def _follow_any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_links, "lies_in_own_directory", lambda fd: False)
    monkeypatch.setattr(followed_links, "refused_component", lambda path: None)


@pytest.mark.parametrize(
    ("loosen", "allowed"),
    [
        (_forget(read_only=False), "read-only"),
        (_forget(write_only=False, no_delete=True), "write-only"),
        (_forget(no_delete=False), "no-delete"),
        (_forget(write_only=False, append_only=False), "write-only append-only"),
        (_forget(owners=True), "all"),
        (_grant_all, "write-only"),
        (_follow_links, "all"),
        (_follow_links, "read-only"),
        (_follow_links, "append-only"),
        (_change_what_exists, "append-only"),
        (_rename_at_will, "no-delete"),
        (_name_any_directory, "all"),
        (_follow_any_link, "all"),
        (_follow_any_link, "read-only"),
    ],
)
def test_a_check_that_is_gone_shows(
    loosen: Patch, allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loosen(monkeypatch)
    requests = HostileRequests(tmp_path / "place")
    with pytest.raises(AssertionError, match=r"seed \d+"):
        for seed in range(REQUESTS):
            requests.request(seed, allowed)


def test_below_append_only_no_caller_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that forgets what it must not do is refused by what does it."""
    _rename_at_will(monkeypatch)
    monkeypatch.setattr(AllowedChanges, "_only_new", lambda self, path, listing, found: (found, frozenset()))
    monkeypatch.setattr(access, "granted_options", _without_owner)
    requests = HostileRequests(tmp_path / "place")
    for seed in range(REQUESTS // 2):
        requests.request(seed, "append-only")
    assert requests.done["made, append-only"] > 5


def _without_owner(open_: Open, access: Access) -> SyncOptions:
    return replace(open_.options, owner=False)
