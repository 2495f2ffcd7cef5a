"""TOML files read strictly: types, bounds, unknown keys, and the key of each mistake."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import RdcError, UsageError
from rdc.lean.records import Record
from rdc.model.location import config_directory
from rdc.model.settings import Setting, SettingKind, Table, read_settings, setting, settings_of

TEXT = """\
# a comment
name = "x"     # 2

[limits]       # 4
count = 5
list = [       # 6
  "a",

  "b",
]
flag = true    # 11
size = "2 MiB"
odd = 1979-05-27

[modules."a.b"]
path = '''
several
lines'''        # 16 to 18
inline = {deep = {er = 1}, two = 2}
dotted.key = 3 # 20
"""


def read(tmp_path: Path, text: str) -> Table:
    path = tmp_path / "file.toml"
    path.write_text(text)
    table = read_settings(path)
    assert table is not None
    return table


TEXT_, TEXTS, FLAG = SettingKind.TEXT, SettingKind.TEXTS, SettingKind.FLAG
DECLARED = {
    "count": Setting(SettingKind.NUMBER, 1, 9),
    "size": Setting(SettingKind.SIZE, 1, 1024),
    "list": Setting(TEXTS),
    "flag": Setting(FLAG),
    "scalar": Setting(SettingKind.SCALAR),
}


class Limits(Record):
    count: int = setting(SettingKind.NUMBER, 1, least=1, most=9)
    list: tuple[str, ...] = setting(TEXTS, ())
    flag: bool = setting(FLAG, False)
    size: int = setting(SettingKind.SIZE, 1, least=1, most=1 << 30)
    odd_one: bool = setting(FLAG, True)


def test_values_have_types(tmp_path: Path) -> None:
    top = read(tmp_path, TEXT.replace("odd = 1979-05-27", ""))
    assert Limits(**top.table("limits").read(settings_of(Limits))) == Limits(5, ("a", "b"), True, 2 << 20)
    for kind, value in ((TEXT_, "x"), (SettingKind.SCALAR, "x"), (TEXTS, ("x",))):
        assert top.read({"name": Setting(kind)}, tables=("limits", "modules")) == {"name": value}
    assert [name for name, _ in top.tables("modules")] == ["a.b"]
    for kind, one in ((SettingKind.SIZE, 5), (SettingKind.SCALAR, "5")):
        assert read(tmp_path, "count = 5").read({"count": Setting(kind)}) == {"count": one}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count = true", "count: expected a whole number"),
        ('\ncount = "5"', "count: expected a whole number"),
        ("count = 99", "count: expected 1 to 9, found 99"),
        ('size = "many"', "size: expected a size such as"),
        ("size = -1", "size: expected 1 to 1024, found -1"),
        ("list = [1]", "list: expected a list of texts"),
        ("flag = 1", "flag: expected true or false"),
        ("table = 1", "table: expected a table"),
        ("\n\ncuont = 1", "cuont: there is no such setting; did you mean 'count'?"),
        ("[zzz]", "zzz: there is no such setting; ask"),
        ("a = [\n1", "not TOML: "),
        ("a = 1\na = 2", "not TOML: Cannot overwrite a value"),
    ],
)
def test_mistakes_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        every_setting(read(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path}/file.toml: {message}")


def test_a_missing_key_is_named_with_its_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'path' is missing in \[a\]; text in quotes is expected"):
        read(tmp_path, "[a]").table("a").read({"path": Setting(TEXT_, required=True)})


def test_files_that_are_none(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none") is None
    for make, words in (
        (lambda p: p.mkdir(), "Is a directory"),
        (os.mkfifo, "found something else"),
        (lambda p: p.write_bytes(b"a = 1\nb = \xff"), ": expected UTF-8"),
        (lambda p: p.write_bytes(b"#" * (2 << 20)), "takes no more"),
    ):
        path = tmp_path / f"file{words[:3]}"
        make(path)
        with pytest.raises(RdcError) as caught:
            read_settings(path)
        assert words in str(caught.value)


MANY = 50_000
REFUSED = {
    "an integer of 5,000 digits": ("x = 1" + "0" * 5000, "value beyond all: Exceeds the limit"),
    "lists in lists": ("x = " + "[" * MANY, "nested too deeply"),
    "lists in lists that end": ("x = " + "[" * MANY + "]" * MANY, "nested too deeply"),
    "tables in tables": ("x = " + "{a=" * MANY, "nested too deeply"),
    "a dotted key": ("a" + ".a" * MANY + " = 1", ": more than 32 parts in a key"),
    "a dotted key with blanks and quotes": ("\na" + " . 'a'.\"b\"" * MANY + " = 1", ": more than 32 parts"),
    "a dotted name of a table": ("[a" + ".a" * MANY + "]", ": more than 32 parts in a key"),
    "a dotted key that never ends": ("a." * MANY, "more than 32 parts in a key"),
    "a key that never ends": ("a" * MANY, ": not TOML"),
    "a text that never ends": ("x = '''" + "a\n" * MANY, ": not TOML"),
    "a year that is none": ("x = 0000-00-00", "not TOML"),
    "a hexadecimal number": (
        "count = 0x" + "f" * MANY,
        ": count: expected 1 to 9, found a number with more",
    ),
    "a number as a text": ("scalar = 0x" + "f" * MANY, "found a number with more than 19 digits"),
    "a long text for a size": (f"size = '{'9' * MANY}'", ": size: expected a size such as"),
    "an unknown key": ("k" * MANY + " = 1", "there is no such setting"),
    "a zero character": ('scalar = "a\\u0000b"', ": scalar: expected text without the character U+0000"),
    "a zero character in a list": ('list = ["a", "\\u0000"]', ": list: expected text without"),
    "a mistake in a long list": ("list = [\n" + '"x",\n' * 20_000 + "1]", "list: expected a list of texts"),
}


def every_setting(table: Table) -> None:
    table.read(DECLARED, tables=("table",), hint="; ask")
    table.table("table").read({})


@pytest.mark.parametrize("name", REFUSED)
def test_what_python_refuses_is_one_short_line(name: str, tmp_path: Path) -> None:
    """Whatever tomllib and Python raise besides errors of TOML, in time that grows with the file alone."""
    text, message = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        every_setting(read(tmp_path, text))
    told = str(caught.value)
    assert message in told and told.startswith(f"{tmp_path}/file.toml")
    assert len(told) < len(str(tmp_path)) + 500 and told.isprintable()


PIECES = (
    *("a", ".", "=", "[", "]", "{", "}", '"', "'", "\n", "#", "0x", "9" * 4301, "1e9", "1979-05-27"),
    *("T00:00:00", "+24:00", "\\u0000", "\\ud800", "'''", '"""', "[[", "inf", "_"),
    *("count", "size", "list", "flag", "table", "scalar"),
)


@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode())
)
def test_any_bytes_are_settings_or_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(data)
    try:
        table = read_settings(path)
        assert table is not None
        every_setting(table)
    except RdcError as error:
        assert str(path) in str(error) and str(error).isprintable()


def test_where_settings_are() -> None:
    assert config_directory({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == "/c/rdc"
    assert config_directory({"XDG_CONFIG_HOME": "rel", "HOME": "/h"}) == "/h/.config/rdc"
    assert config_directory({}) is None
