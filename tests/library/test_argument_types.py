"""Wrong types fail with one TypeError that names the field or the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rdc
from rdc.lean.checks import check_fields
from rdc.lean.records import Record

WRONG: Any = object()
TEXT: Any = "text"

RECORDS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (rdc.SyncOptions, {"delete": "yes"}, "SyncOptions.delete: expected bool, found str"),
    (rdc.SyncOptions, {"delete": 1}, "SyncOptions.delete: expected bool, found int"),
    (rdc.SyncOptions, {"max_delete": True}, "SyncOptions.max_delete: expected int | None, found bool"),
    (
        rdc.SyncOptions,
        {"rules": [rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*")]},
        "SyncOptions.rules: expected tuple[FilterRule | DirectoryRules, ...], found list",
    ),
    (
        rdc.SyncOptions,
        {"rules": ("*.o",)},
        "SyncOptions.rules[0]: expected FilterRule | DirectoryRules, found str",
    ),
    (
        rdc.FilterRule,
        {"action": rdc.RuleAction.EXCLUDE, "pattern": "*"},
        "FilterRule.pattern: expected bytes, found str",
    ),
    (rdc.FilterRule, {"action": "-", "pattern": b"*"}, "FilterRule.action: expected RuleAction, found str"),
    (rdc.Location, {"host": b"host", "path": b"/"}, "Location.host: expected str | None, found bytes"),
    (rdc.RemoteShell, {"command": "ssh"}, "RemoteShell.command: expected tuple[str, ...], found str"),
    (rdc.ScanOptions, {"seconds": "9"}, "ScanOptions.seconds: expected float | None, found str"),
    (rdc.MergeOptions, {"memory": 0.5}, "MergeOptions.memory: expected int, found float"),
    (rdc.DuplicateOptions, {"order": "waste"}, "DuplicateOptions.order: expected DuplicateOrder, found str"),
    (rdc.SimilarOptions, {"to": 3}, "SimilarOptions.to: expected bytes | str | None, found int"),
    (rdc.DedupeOptions, {"keep": ("a",)}, "DedupeOptions.keep[0]: expected bytes, found str"),
    (rdc.DuplicateListing, {"text": "{}"}, "DuplicateListing.text: expected bytes, found str"),
    (rdc.WatchOptions, {"sync": None}, "WatchOptions.sync: expected SyncOptions, found None"),
    (rdc.CheckOptions, {"session": None}, "CheckOptions.session: expected SyncOptions, found None"),
    (rdc.Sample, {"share": "1%"}, "Sample.share: expected float, found str"),
    (rdc.ChunkParams, {"min_size": "64", "max_size": 128}, "ChunkParams.min_size: expected int, found str"),
    (rdc.Traits, {"packed": "123456789"}, "Traits.packed: expected bytes, found str"),
]


@pytest.mark.parametrize(
    ("record", "fields", "message"), RECORDS, ids=lambda part: getattr(part, "__name__", "")
)
def test_a_wrong_field_is_named(record: Callable[..., Any], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        record(**fields)
    assert str(raised.value) == message


JOBS: dict[str, Callable[..., Any]] = {
    "scan": rdc.scan,
    "merge": rdc.merge,
    "dupes": rdc.dupes,
    "similar": rdc.similar,
    "dedupe": rdc.dedupe,
}
PLACES: dict[str, Callable[..., Any]] = {"sync": rdc.sync, "watch": rdc.watch, "check": rdc.check}


@pytest.mark.parametrize("name", [*JOBS, *PLACES])
def test_a_wrong_argument_of_a_job_is_named(name: str) -> None:
    job = (JOBS | PLACES)[name]
    places = ("a", "b") if name in PLACES else ("a",)
    for argument, expected in (
        ("options", "| None, found object"),
        ("reporter", "expected a function, found object"),
        ("stop", r"expected an object with is_set\(\), found object"),
        ("catalog", r"expected an object with flush\(\), found object"),
    ):
        if (name, argument) != ("merge", "catalog"):
            with pytest.raises(TypeError, match=rf"^{name}\.{argument}: .*{expected}$"):
                job(*places, **{argument: WRONG})
    with pytest.raises(TypeError, match=rf"^{name}\.(source|paths|parts): expected .*, found object$"):
        job(WRONG, *places[1:])


@pytest.mark.parametrize("name", list(JOBS))
def test_a_wrong_path_of_several_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\.(paths|parts)\[1\]: expected .*, found int$"):
        JOBS[name](["a", 2])


@pytest.mark.parametrize("name", list(PLACES))
def test_wrong_arguments_about_the_far_side_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\.destination: expected .*, found int$"):
        PLACES[name]("a", 3)
    with pytest.raises(TypeError, match=rf"^{name}\.shell: expected RemoteShell \| None, found str$"):
        PLACES[name]("a", "b", shell=TEXT)
    with pytest.raises(TypeError, match=rf"^{name}\.keys: expected .*, found int$"):
        PLACES[name]("a", "b", keys=3)


def test_a_check_refuses_options_that_mean_nothing_to_it() -> None:
    places = ("a/", "b/")
    with pytest.raises(rdc.UsageError, match=r"^SyncOptions\.delete has no effect on a check; "):
        rdc.check(*places, rdc.CheckOptions(rdc.SyncOptions(delete=True)))
    with pytest.raises(rdc.UsageError, match=r"^Sample\.share: expected more than 0 and at most 1, found 2"):
        rdc.check(*places, rdc.CheckOptions(sample=rdc.Sample(2)))
    with pytest.raises(TypeError, match=r"^check\.on_difference: expected a function, found object$"):
        rdc.check(*places, on_difference=WRONG)


def test_wrong_arguments_about_contents_are_named() -> None:
    params = rdc.ChunkParams.for_mean(1024)
    index = rdc.SimilarityIndex()
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: rdc.cuts(TEXT, params), "cuts.data: expected bytes or another buffer, found str"),
        (lambda: rdc.cuts(b"", WRONG), "cuts.params: expected ChunkParams, found object"),
        (lambda: rdc.sign(TEXT, params), "sign.source: expected bytes or another buffer, found str"),
        (lambda: rdc.sign(b"", WRONG), "sign.params: expected ChunkParams, found object"),
        (
            lambda: rdc.chunks(TEXT, params),
            "chunks.source: expected a buffer, spans or a binary file, found str",
        ),
        (
            lambda: list(rdc.chunks([TEXT], params)),
            "chunks.source[0]: expected bytes or another buffer, found str",
        ),
        (lambda: rdc.chunks(b"", WRONG), "chunks.params: expected ChunkParams, found object"),
        (lambda: rdc.Chunker(WRONG), "Chunker.params: expected ChunkParams, found object"),
        (lambda: rdc.sign_file(WRONG), "sign_file.path: expected str | bytes | PathLike, found object"),
        (lambda: rdc.sign_file("a", WRONG), "sign_file.params: expected ChunkParams, found object"),
        (lambda: rdc.open_index(WRONG), "open_index.source: expected a path or a binary file, found object"),
        (lambda: rdc.ChunkParams.for_mean(TEXT), "ChunkParams.for_mean.size: expected int, found str"),
        (lambda: index.add(1, WRONG), "SimilarityIndex.add.traits: expected Traits, found object"),
        (lambda: index.query(WRONG), "SimilarityIndex.query.traits: expected Traits, found object"),
        (lambda: index.add(WRONG, rdc.Traits(bytes(9))), "SimilarityIndex.key: expected int, found object"),
        (lambda: rdc.parse_location(WRONG), "parse_location.text: expected str, found object"),
    ]
    for call, message in calls:
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == message


class Odd(Record):
    """A record with an annotation that the checks do not read."""

    field: Callable[[], int]

    def __post_init__(self) -> None:
        check_fields(self)


def test_an_annotation_that_cannot_be_read_is_no_silent_pass() -> None:
    with pytest.raises((TypeError, KeyError)):
        Odd(lambda: 1)


def test_right_types_pass() -> None:
    assert rdc.ScanOptions(seconds=3).seconds == 3
    assert rdc.SyncOptions(max_delete=None, compress=True).compress
    assert rdc.DuplicateOptions(rules=()).rules == ()
