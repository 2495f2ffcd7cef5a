"""What is declared of an option holds for the library, the wire and the command line alike."""

from __future__ import annotations

from typing import Any

import pytest

from rdc.cli.options import sync_options
from rdc.cli.options.sync_options import parse_sync, read_request
from rdc.errors import UsageError
from rdc.model.location import FarList
from rdc.model.options import ALWAYS, Alternates, AlternateUse, Backup, Carrier, FileList, KeepUndo
from rdc.model.selection import DirectoryRules
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.protocol.messages import Open, Role
from rdc.protocol.wire.options import ADDED_OPTIONS, NamedValues, Options

LINK = Alternates(AlternateUse.LINK, (b"../a",))
KEEP = KeepUndo(days=1)
OF_ACL = "an ACL holds the permissions, too"
LEFT_HALF = "a file that a killed run left half written would be passed over by the next"
NUMBERS = "ACLs name users by their numbers"

EXCLUDED: list[tuple[str, dict[str, object], str]] = [
    ("--chmod=F600 -A", {"chmod": "F600", "acls": True}, f"--chmod and --acls exclude each other: {OF_ACL}"),
    (
        "-A --no-perms",
        {"acls": True, "perms": False},
        f"--acls and --no-perms exclude each other: {OF_ACL}",
    ),
    (
        "-W --append",
        {"whole_file": True, "append": True},
        "--whole-file and --append exclude each other: --append fetches only a rest",
    ),
    (
        "--append -c",
        {"append": True, "checksum": True},
        "--append and --checksum exclude each other: a file of the same length is left alone, whatever it"
        " holds",
    ),
    (
        "--inplace -u",
        {"inplace": True, "update": True},
        f"--inplace and --update exclude each other: {LEFT_HALF}",
    ),
    (
        "--append --size-only",
        {"append": True, "size_only": True},
        f"--append and --size-only exclude each other: {LEFT_HALF}",
    ),
    (
        "--link-dest=../a --inplace",
        {"alternates": LINK, "inplace": True},
        "--inplace and --link-dest exclude each other: writing into a link would change the file in DIR",
    ),
    (
        "--munge-links --safe-links",
        {"munge_links": True, "safe_links": True},
        "--munge-links and --safe-links exclude each other: munged links lead nowhere",
    ),
    (
        "--munge-links -L",
        {"munge_links": True, "copy_links": True},
        "--munge-links and --copy-links exclude each other: munged links lead nowhere",
    ),
    (
        "--keep-undo=1d --backup-dir=old",
        {"keep_undo": KEEP, "backup": Backup(b"", b"old")},
        "--keep-undo and --backup-dir exclude each other: both keep the old versions",
    ),
    (
        "--keep-undo=1d --append",
        {"keep_undo": KEEP, "append": True},
        "--keep-undo and --append exclude each other: it overwrites the old versions",
    ),
    (
        "--usermap=*:me --no-owner",
        {"usermap": b"*:me", "owner": False},
        "--usermap (or --chown) and --no-owner exclude each other: it says what owners become",
    ),
    (
        "--no-numeric-ids -A",
        {"owner_names": True, "acls": True},
        f"--no-numeric-ids and --acls exclude each other: {NUMBERS}",
    ),
    (
        "--fake-super --keep-undo=1d",
        {"fake_super": True, "keep_undo": KEEP},
        "--fake-super cannot be combined with --keep-undo: leave one of them out",
    ),
    (
        "-K -b",
        {"keep_dirlinks": True, "backup": Backup(b"~")},
        "--keep-dirlinks cannot be combined with backups, alternate directories or undo",
    ),
    (
        "--partial-dir=p --inplace",
        {"partial_dir": b"p", "inplace": True},
        "--partial-dir cannot be combined with --inplace or --append",
    ),
    (
        "--delay-updates --append",
        {"delay_updates": True, "append": True},
        "--delay-updates cannot be combined with --inplace, --append or alternate directories",
    ),
    (
        "--remove-source-files -k",
        {"remove_source_files": True, "copy_dirlinks": True},
        "--remove-source-files and --copy-dirlinks exclude each other: nothing is removed through a symlink",
    ),
    (
        "--ignore-errors --filter=:_.rules",
        {"ignore_errors": True, "rules": (DirectoryRules(b".rules"),)},
        "--ignore-errors cannot be combined with rules from files of the tree: what a file with a mistake"
        " hides would be deleted",
    ),
]
"""The words, the fields, and the sentence of all three."""


@pytest.mark.parametrize(("words", "fields", "sentence"), EXCLUDED, ids=[words for words, *_ in EXCLUDED])
def test_the_same_sentence_refuses_a_combination_everywhere(
    words: str, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as of_library:
        SyncOptions(**fields)
    assert str(of_library.value) == sentence
    parsed = parse_sync([*(word.replace("_", " ") for word in words.split()), "a", "b"])
    with pytest.raises(UsageError) as of_words:
        read_request(parsed, lambda _: b"")
    assert str(of_words.value) == sentence
    if any(OPTIONS[name].wire.carrier is Carrier.HERE for name in fields):
        return
    named = {name: fields[name] for name in sorted(fields.keys() & ADDED_OPTIONS.keys())}
    listed = {name: value for name, value in fields.items() if name not in named}
    if not named:
        items = Options().pack(SyncOptions())
        assert isinstance(items, list)
        for name in listed:
            items[len(Options.ITEMS)] |= 1 << OPTIONS[name].wire.at
        with pytest.raises(ValueError, match=sentence):
            Options().unpack(tuple(items))
        return
    core = SyncOptions(**listed)
    asking = Open(Role.DESTINATION, b"", bytes(16), core, None, NamedValues(tuple(named.items())))
    with pytest.raises(UsageError) as of_wire:
        _ = asking.asked
    assert str(of_wire.value) == sentence


def test_two_lists_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="two lists of paths are given; a run takes one"):
        SyncOptions(files=FileList((b"a",)), files_from=FarList(b"list"))


def test_each_exclusion_is_between_fields_and_has_a_sentence() -> None:
    for name, declared in OPTIONS.items():
        for exclusion in declared.excludes:
            assert set(exclusion.others) <= OPTIONS.keys() - {name}
            assert exclusion.sentence.count("{}") in (0, 2)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("max_delete", -5, "-5 is not in 0..9223372036854775807"),
        ("bandwidth", -1, "-1 is not in 0..9223372036854775807"),
        ("timeout", -1, "-1 is not in 0..1000000"),
        ("guard", 500, "500 is not in 0..100"),
        ("max_delete_share", 101, "101 is not in 0..100"),
        ("min_size", -1, "-1 is not in 0..9223372036854775807"),
        ("depth", 65, "65 is not in 0..64"),
        ("temp_dir", b"a\0b", "a path has no NUL byte"),
        ("partial_dir", bytes(20_000), "20000 bytes, the limit is 16384"),
        ("chmod", "F99", "F99: "),
        ("usermap", b"me", "me: expected FROM:TO"),
    ],
)
def test_a_value_out_of_range_fails_where_it_is_given(field: str, value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=rf"^SyncOptions\.{field}: {text}"):
        SyncOptions(**{field: value})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backup(b""),
        lambda: Backup(b"a/b"),
        lambda: Backup(b"~", b""),
        KeepUndo,
        lambda: KeepUndo(size=1, days=1),
        lambda: KeepUndo(days=0),
        lambda: Alternates(AlternateUse.LINK, ()),
        lambda: Alternates(AlternateUse.LINK, (b"a",) * 21),
        lambda: Alternates(AlternateUse.COPY, (b"a\0",)),
        lambda: FarList(b""),
    ],
)
def test_records_that_mean_nothing_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"^(Backup|KeepUndo|Alternates|FarList)"):
        make()


def test_every_field_is_declared_and_read() -> None:
    assert list(OPTIONS) == list(SyncOptions.__annotations__)
    for name, declared in OPTIONS.items():
        assert getattr(SyncOptions(), name) == declared.default
        by_hand = name in sync_options._READERS or name == "files"
        for option in declared.options:
            assert by_hand or option.metavar is None or declared.parse is not None, option.names
            assert all(other in OPTIONS for other, _ in option.also)
            assert option.metavar is None or option.sets is not ALWAYS


def test_positions_on_the_wire_are_taken_once() -> None:
    for carrier in (Carrier.ITEM, Carrier.BIT, Carrier.BOUND):
        places = sorted(each.wire.at for each in OPTIONS.values() if each.wire.carrier is carrier)
        assert places == list(range(len(places)))
