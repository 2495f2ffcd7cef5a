"""Options as keywords are those of the records, and mean the same."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdc
from rdc.lean.records import field_names
from rdc.library.keywords import keywords_of, read_keywords
from rdc.model.sync import OPTIONS
from scripts.manual.stub import STUB, keyword_functions, written_stub

FUNCTIONS = keyword_functions()


def read(**keywords: object) -> rdc.SyncOptions:
    return read_keywords("sync", rdc.SyncOptions, None, keywords)


def test_the_stub_is_what_the_code_says() -> None:
    text = STUB.read_text()
    assert text == written_stub(text), "python -m scripts.manual.stub writes it"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_field_is_a_keyword_with_its_default(name: str) -> None:
    record = FUNCTIONS[name]
    plain = record()
    keywords = keywords_of(record)
    for field in field_names(record):
        value = getattr(plain, field)
        if isinstance(value, rdc.SyncOptions):
            mark = "watch" if record is rdc.WatchOptions else "check"
            assert {one for one, each in keywords.items() if each.nested == field} >= {
                option for option, declared in OPTIONS.items() if getattr(declared, mark)
            }
        else:
            assert keywords[field].default == value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_keyword_has_the_name_of_a_parameter(name: str) -> None:
    assert not keywords_of(FUNCTIONS[name]).keys() & inspect.signature(getattr(rdc, name)).parameters.keys()


FLAGS = sorted(
    name for name in field_names(rdc.SyncOptions) if rdc.SyncOptions.__annotations__[name] == "bool"
)


@given(st.dictionaries(st.sampled_from(FLAGS), st.booleans(), min_size=1))
def test_flags_mean_the_fields_of_the_record(flags: dict[str, Any]) -> None:
    try:
        expected: rdc.SyncOptions | str = rdc.SyncOptions(**flags)
    except rdc.UsageError as error:
        expected = str(error)
    try:
        found: rdc.SyncOptions | str = read(**flags)
    except rdc.UsageError as error:
        found = str(error)
    assert found == expected


EXCLUDE = rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*.o")
INCLUDE = rdc.FilterRule(rdc.RuleAction.INCLUDE, b"keep.o")

SAME: list[tuple[dict[str, object], dict[str, Any]]] = [
    ({"exclude": "*.o"}, {"rules": (EXCLUDE,)}),
    ({"exclude": ["*.o"]}, {"rules": (EXCLUDE,)}),
    ({"exclude": (b"*.o", Path("a"))}, {"rules": (EXCLUDE, rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"a"))}),
    ({"exclude": ["*.o"], "include": ["keep.o"]}, {"rules": (INCLUDE, EXCLUDE)}),
    ({"exclude": ["*.o"], "rules": "+ keep.o"}, {"rules": (INCLUDE, EXCLUDE)}),
    ({"rules": ["+ keep.o", EXCLUDE]}, {"rules": (INCLUDE, EXCLUDE)}),
    ({"max_size": "500M"}, {"max_size": 500 << 20}),
    ({"max_size": 7}, {"max_size": 7}),
    ({"bandwidth": "2MB"}, {"bandwidth": 2_000_000}),
    ({"temp_dir": Path("/aside")}, {"temp_dir": b"/aside"}),
    ({"temp_dir": b"/aside"}, {"temp_dir": b"/aside"}),
    ({"partial_dir": ".partial/"}, {"partial_dir": b".partial"}),
    ({"usermap": "*:nobody"}, {"usermap": b"*:nobody"}),
    ({"backup": True}, {"backup": rdc.Backup(b"~")}),
    ({"backup": ".old"}, {"backup": rdc.Backup(b".old")}),
    ({"backup_dir": "../old"}, {"backup": rdc.Backup(b"", b"../old")}),
    ({"keep_undo": "30d"}, {"keep_undo": rdc.KeepUndo(days=30)}),
    ({"files": ["a", b"b", Path("c")]}, {"files": rdc.FileList((b"a", b"b", b"c"))}),
    ({"link_dest": "../m"}, {"alternates": rdc.Alternates(rdc.AlternateUse.LINK, (b"../m",))}),
    ({"copy_dest": ["a", "b"]}, {"alternates": rdc.Alternates(rdc.AlternateUse.COPY, (b"a", b"b"))}),
    ({"compare_dest": ["a"]}, {"alternates": rdc.Alternates(rdc.AlternateUse.COMPARE, (b"a",))}),
]


@pytest.mark.parametrize(("keywords", "fields"), SAME, ids=" ".join)
def test_a_keyword_accepts_text_lists_and_paths(keywords: dict[str, object], fields: dict[str, Any]) -> None:
    assert read(**keywords) == rdc.SyncOptions(**fields)


REFUSED: list[tuple[dict[str, object], type[Exception], str]] = [
    ({"delet": True}, TypeError, "sync() has no keyword 'delet'; did you mean 'delete'?"),
    ({"zzz": 1}, TypeError, "sync() has no keyword 'zzz'"),
    ({"delete": "yes"}, TypeError, "SyncOptions.delete: expected bool, found str"),
    ({"exclude": 3}, TypeError, "exclude: expected a pattern or a list of them, found int"),
    ({"exclude": [3]}, TypeError, "FilterRule.pattern: expected bytes, found int"),
    ({"max_size": "much"}, ValueError, "sync.max_size: a size such as 500M or 2G is expected"),
    ({"max_delete": -5}, ValueError, f"SyncOptions.max_delete: -5 is not in 0..{(1 << 63) - 1}"),
    (
        {"backup": True, "backup_dir": "old"},
        rdc.UsageError,
        "sync: backup and backup_dir exclude each other; give one of them",
    ),
    (
        {"backup": True, "keep_undo": "30d"},
        rdc.UsageError,
        "--keep-undo and --backup exclude each other: both keep the old versions",
    ),
]


@pytest.mark.parametrize(("keywords", "error", "message"), REFUSED, ids=lambda part: str(part)[:40])
def test_a_wrong_keyword_is_named(keywords: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        read(**keywords)
    assert str(raised.value) == message


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_record_and_keywords_exclude_each_other(name: str) -> None:
    record, function = FUNCTIONS[name], getattr(rdc, name)
    keyword = next(iter(keywords_of(record)))
    two = name in {"sync", "check", "watch", "unite", "store_put"}
    with pytest.raises(TypeError) as raised:
        function(*["missing", "missing"][: 1 + two], record(), **{keyword: None})
    assert str(raised.value) == (
        f"{name}: options= and the keyword {keyword}= are given; give options as keywords, or all of them in"
        f" one {record.__name__}"
    )


def test_keywords_of_checks_and_watches_reach_the_session() -> None:
    checked = read_keywords(
        "check", rdc.CheckOptions, None, {"times": False, "exclude": "*.o", "sample": 0.5}
    )
    assert checked == rdc.CheckOptions(rdc.SyncOptions(rules=(EXCLUDE,)), times=False, sample=rdc.Sample(0.5))
    watched = read_keywords(
        "watch", rdc.WatchOptions, None, {"rescan": 9, "delete": True, "on_sync": ["a", "b"]}
    )
    assert watched == rdc.WatchOptions(rdc.SyncOptions(delete=True), 9, ("a", "b"))
    with pytest.raises(TypeError, match="has no keyword 'update'"):
        read_keywords("check", rdc.CheckOptions, None, {"update": True})


def test_enumerations_are_known_by_their_values() -> None:
    assert read_keywords("unite", rdc.UniteOptions, None, {"prefer": "newer"}).prefer is rdc.Prefer.NEWER
    with pytest.raises(ValueError, match=r"^unite\.prefer: 'newest' is not a valid Prefer"):
        read_keywords("unite", rdc.UniteOptions, None, {"prefer": "newest"})


@pytest.mark.parametrize("form", [str, os.fsencode, Path, lambda path: [path]])
def test_a_sync_takes_places_of_every_form(tmp_path: Path, form: Any) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x.o", "y"):
        (tmp_path / "a" / name).write_text(name)
    (tmp_path / "b" / "a").mkdir(parents=True)
    (tmp_path / "b" / "a" / "old").touch()
    source, destination = form(str(tmp_path / "a")), tmp_path / "b"
    report = rdc.sync(source, os.fsencode(destination), delete=True, exclude=["*.o"], catalog=None)
    assert report.deleted == 1
    assert [path.name for path in (destination / "a").iterdir()] == ["y"]


def test_a_name_that_is_no_text_keeps_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    name = b"\xff\xfe caf\xe9"
    with open(os.path.join(os.fsencode(tmp_path), b"a", name), "w"):
        pass
    events: list[rdc.Event] = []
    rdc.sync(tmp_path / "a", tmp_path / "b", reporter=events.append, catalog=None)
    items = [event for event in events if isinstance(event, rdc.ItemChanged)]
    assert items[-1].path_bytes == b"a/" + name
    assert os.fsencode(items[-1].path) == b"a/" + name
    assert os.path.exists(tmp_path / "b" / items[-1].path)
