"""A sync into a store by mistake is refused; an off-site copy of it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.model.location import RemoteShell
from tests.support.running.syncing import FAR, PSEUDO_SSH
from tests.support.store.stores import put_tree, state_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    top.mkdir()
    (top / "file").write_bytes(b"content")
    return top


@pytest.fixture
def store(source: Path, tmp_path: Path) -> Path:
    put_tree(source, tmp_path / "st")
    return tmp_path / "st"


DELETE = rdc.SyncOptions(delete=True)


@pytest.mark.parametrize("below", ["", "packs", "snapshots/", "not/there"])
@pytest.mark.parametrize("options", [DELETE, rdc.SyncOptions(), rdc.SyncOptions(dry_run=True)])
def test_a_sync_into_a_store_is_refused(
    source: Path, store: Path, below: str, options: rdc.SyncOptions
) -> None:
    before = state_of(store)
    with pytest.raises(UsageError, match="a sync would change or delete its packs"):
        rdc.sync(f"{source}/", f"{store}/{below}", options, catalog=None)
    with pytest.raises(UsageError, match="a sync would change or delete its packs"):
        rdc.sync(f"{store}/@1/", f"{store}/{below}", options, catalog=None)
    assert state_of(store) == before


def test_a_store_is_no_target_by_its_name_either(source: Path, store: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "st").mkdir(parents=True)
    (tmp_path / "other" / "st" / "file").write_bytes(b"x")
    with pytest.raises(UsageError, match="is a store"):
        rdc.sync(str(tmp_path / "other" / "st"), str(tmp_path), DELETE, catalog=None)


def test_a_copy_of_a_store_is_brought_up_to_date(source: Path, store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    rdc.sync(f"{store}/", f"{copy}/", DELETE, catalog=None)
    (source / "file").write_bytes(b"changed")
    put_tree(source, store)
    for _ in range(2):
        assert rdc.sync(f"{store}/", f"{copy}/", DELETE, catalog=None).exit is ExitCode.OK
    assert state_of(copy) == state_of(store)
    assert rdc.verify_store(copy, 1.0).damaged == 0
    rdc.sync(f"{copy}/@2/", str(tmp_path / "out"), catalog=None)
    assert (tmp_path / "out" / "file").read_bytes() == b"changed"


def test_another_store_is_none(source: Path, store: Path, tmp_path: Path) -> None:
    put_tree(source, tmp_path / "second")
    with pytest.raises(UsageError, match="SRC is not a copy of it"):
        rdc.sync(f"{tmp_path}/second/", f"{store}/", rdc.SyncOptions(), catalog=None)


def test_over_ssh(source: Path, store: Path, tmp_path: Path) -> None:
    """The far rdc opens snapshots, and refuses what would delete packs."""
    shell = RemoteShell(command=(str(PSEUDO_SSH),), program=FAR)
    rdc.sync(f"host:{store}/@latest/", str(tmp_path / "out"), shell=shell, catalog=None)
    assert (tmp_path / "out" / "file").read_bytes() == b"content"
    before = state_of(store)
    for target in (f"host:{store}/", f"host:{store}/packs/"):
        with pytest.raises(RdcError, match="a sync would change or delete its packs"):
            rdc.sync(f"{source}/", target, DELETE, shell=shell, catalog=None)
    assert state_of(store) == before
    copy = tmp_path / "copy"
    for _ in range(2):
        rdc.sync(f"{store}/", f"host:{copy}/", shell=shell, catalog=None)
    assert state_of(copy) == state_of(store)
    with pytest.raises(RdcError, match="no such snapshot"):
        rdc.sync(f"host:{store}/@9/", str(tmp_path / "out"), shell=shell, catalog=None)
    assert os.listdir(tmp_path / "out") == ["file"]
