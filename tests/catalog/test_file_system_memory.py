"""What is remembered of file systems: the facts in their file, and the device numbers of one run."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest

from rdc.catalog import catalog, file_system_memory
from rdc.catalog.catalog import KnownFileSystems
from rdc.catalog.database import Database
from rdc.catalog.file_system_memory import FILE_NAME, FileSystemMemory
from rdc.catalog.store import SmallFiles
from rdc.chunking import SYNC_PARAMS
from rdc.files.facts.file_systems import ChangeTimes, FileSystem, file_system_of
from rdc.files.root.root import Root
from rdc.limits import REMEMBERED_FILE_SYSTEMS
from rdc.model.entries import ComparedFields
from rdc.model.preserved import PLAIN, FileSystemFacts

KEYS = [bytes([number]) * 16 for number in range(3)]
ODD = FileSystemFacts(stable=ComparedFields(inode=False, ctime=False), steady=False, syncs=False)


def memory(top: Path) -> FileSystemMemory:
    return FileSystemMemory(Database(top / "catalog"))


def test_facts_are_known_to_the_next_run(tmp_path: Path) -> None:
    memory(tmp_path).remember(KEYS[0], ODD)
    memory(tmp_path).remember(KEYS[1], PLAIN)
    assert [memory(tmp_path).facts(key) for key in KEYS] == [ODD, PLAIN, None]


@pytest.mark.parametrize(
    "facts",
    [
        FileSystemFacts(steady=False),
        FileSystemFacts(no_replace=False),
        FileSystemFacts(hard_links=False),
        FileSystemFacts(syncs=False),
    ],
)
def test_each_fact_is_kept_apart(tmp_path: Path, facts: FileSystemFacts) -> None:
    memory(tmp_path).remember(KEYS[0], facts)
    assert memory(tmp_path).facts(KEYS[0]) == facts


def test_new_facts_replace_old_ones(tmp_path: Path) -> None:
    for facts in (ODD, PLAIN):
        memory(tmp_path).remember(KEYS[0], facts)
    assert memory(tmp_path).facts(KEYS[0]) == PLAIN


def test_facts_that_are_known_are_not_written_again(tmp_path: Path) -> None:
    memory(tmp_path).remember(KEYS[0], ODD)
    written = (tmp_path / "catalog" / FILE_NAME).stat()
    memory(tmp_path).remember(KEYS[0], ODD)
    assert (tmp_path / "catalog" / FILE_NAME).stat().st_ino == written.st_ino


def test_the_file_system_that_was_not_used_for_the_longest_time_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = iter(range(1, REMEMBERED_FILE_SYSTEMS + 2))
    monkeypatch.setattr("time.time", lambda: next(days) * 86_400.0)
    keys = [number.to_bytes(16, "big") for number in range(REMEMBERED_FILE_SYSTEMS + 1)]
    for key in keys:
        memory(tmp_path).remember(key, ODD)
    assert memory(tmp_path).facts(keys[0]) is None
    assert all(memory(tmp_path).facts(key) == ODD for key in keys[1:])


def test_a_file_with_any_damage_counts_as_missing(tmp_path: Path) -> None:
    memory(tmp_path).remember(KEYS[0], ODD)
    path = tmp_path / "catalog" / FILE_NAME
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert memory(tmp_path).facts(KEYS[0]) is None, at
        path.write_bytes(whole[:at])
        assert memory(tmp_path).facts(KEYS[0]) is None, at
    memory(tmp_path).remember(KEYS[1], ODD)
    assert memory(tmp_path).facts(KEYS[1]) == ODD


@pytest.mark.parametrize("body", [b"00 1 2 3\n", b"%b 1 0 64\n" % KEYS[0].hex().encode(), b"no line\n"])
def test_a_line_of_another_form_counts_as_missing(tmp_path: Path, body: bytes) -> None:
    memory(tmp_path).remember(KEYS[0], ODD)
    digest = file_system_memory._digest(body)
    (tmp_path / "catalog" / FILE_NAME).write_bytes(file_system_memory._HEAD + digest + b"\n" + body)
    assert memory(tmp_path).facts(KEYS[0]) is None


def test_a_link_is_not_followed_and_is_replaced(tmp_path: Path) -> None:
    memory(tmp_path).remember(KEYS[0], ODD)
    path = tmp_path / "catalog" / FILE_NAME
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert memory(tmp_path).facts(KEYS[0]) is None
    kept = (tmp_path / "elsewhere").read_bytes()
    memory(tmp_path).remember(KEYS[1], ODD)
    assert not path.is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == kept


def test_a_directory_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "catalog").write_bytes(b"a file in its place")
    memory(tmp_path).remember(KEYS[0], ODD)
    assert memory(tmp_path).facts(KEYS[0]) is None


# Device numbers


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "file").write_bytes(b"content")
    return Root.open(os.fsencode(tmp_path))


def listed(root: Root, device: int, name: bytes = b"file") -> SmallFiles:
    one, many = array("Q", [1]), array("q", [1])
    return SmallFiles(root, name + b"\0", array("Q", [device]), one, one, many, many)


def test_a_device_is_asked_for_once(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(fd: int) -> FileSystem:
        asked.append(fd)
        return file_system_of(fd)

    monkeypatch.setattr(catalog, "file_system_of", counted)
    systems = KnownFileSystems()
    with root.open_read(b"file") as source:
        device = source.identity.device
        assert systems.known(device) is None
        states = [systems.state_of(source, SYNC_PARAMS) for _ in range(2)]
        found = systems.of_listed(device, listed(root, device))
    assert len(asked) == 1
    assert found is systems.known(device)
    assert states[0] is not None
    assert states[0] == states[1]
    assert states[0].identity == source.identity


def test_a_listed_device_is_found_by_its_file(root: Root) -> None:
    device = os.fstat(root.fileno()).st_dev
    systems = KnownFileSystems()
    assert systems.of_listed(device, listed(root, device)) == file_system_of(root.fileno())


def test_a_file_that_went_or_lies_elsewhere_by_now_tells_nothing(root: Root) -> None:
    device = os.fstat(root.fileno()).st_dev
    systems = KnownFileSystems()
    assert systems.of_listed(device, listed(root, device, b"gone")) is None
    assert systems.of_listed(device + 1, listed(root, device + 1)) is None
    assert systems.known(device) is None
    assert systems.known(device + 1) is None


def test_a_change_time_that_proves_nothing_gives_no_state(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "file_system_of", lambda fd: FileSystem(1, ChangeTimes.NONE))
    with root.open_read(b"file") as source:
        assert KnownFileSystems().state_of(source, SYNC_PARAMS) is None


def test_a_file_system_that_does_not_answer_gives_no_state(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(fd: int) -> FileSystem:
        raise OSError("no answer")

    monkeypatch.setattr(catalog, "file_system_of", refused)
    systems = KnownFileSystems()
    with root.open_read(b"file") as source:
        assert systems.state_of(source, SYNC_PARAMS) is None
        assert systems.of_listed(source.identity.device, listed(root, source.identity.device)) is None
