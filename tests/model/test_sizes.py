"""A size means the same on the command line, in a settings file and in the environment."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.cli.environment import default_words, parse_words, read_size
from rdc.cli.options.sync_options import SYNC_OPTIONS, parse_sync, read_request
from rdc.duplicates.dupes_command import OPTIONS as DUPES_OPTIONS
from rdc.errors import UsageError
from rdc.limits import SIZE_LIMIT
from rdc.model.options import parse_size
from rdc.model.settings import Setting, SettingKind, read_settings
from rdc.report.output import size_text
from rdc.survey.scan_command import parse_scan, read_memory
from tests.support.share import examples

UNITS = {"": 1, "b": 1}
for power, letter in enumerate("kmgtp", start=1):
    UNITS |= {letter: 1024**power, letter + "ib": 1024**power, letter + "b": 1000**power}

NUMBERS = st.from_regex(r"(0|[1-9][0-9]{0,3})(\.[0-9]{0,4})?|\.[0-9]{1,4}", fullmatch=True)
TYPED = st.tuples(NUMBERS, st.sampled_from(["", " "]), st.sampled_from(sorted(UNITS)), st.booleans())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("7b", 7),
        ("1k", 1024),
        ("512MB", 512_000_000),
        ("512M", 512 << 20),
        ("1.5M", 3 << 19),
        ("2 G", 2 << 30),
        ("2GiB", 2 << 30),
        ("2gb", 2_000_000_000),
        ("0.5", 0),
        (".5k", 512),
        ("9999999999999999999p", SIZE_LIMIT),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert read_size("--min-size", text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "k",
        "-1",
        "+1",
        "1x",
        "1kk",
        "1ib",
        "1  k",
        " 1",
        "1 ",
        "1\n",
        "1,5",
        "1e3",
        "\u0663",
        "1" * 20,
    ],
)
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text) is None
    with pytest.raises(UsageError, match="--min-size="):
        read_size("--min-size", text)


@given(TYPED, st.sampled_from([1, 1024]))
def test_a_size_is_its_number_times_its_unit(typed: tuple[str, str, str, bool], plain: int) -> None:
    number, space, letters, upper = typed
    text = number + (space + letters if letters else "")
    unit = UNITS[letters] if letters else plain
    value = Fraction("0" + number.rstrip(".")) * unit
    assert parse_size(text.upper() if upper else text, unit=plain) == min(int(value), SIZE_LIMIT)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TYPED)
def test_every_place_reads_the_same(tmp_path: Path, typed: tuple[str, str, str, bool]) -> None:
    number, space, letters, upper = typed
    if not letters:
        letters = "b"
    # Between the least and the most that any of the places takes.
    text = f"9{number}{space}{letters.upper() if upper else letters}"
    size = parse_size(text)
    assert size is not None

    file = tmp_path / "config.toml"
    file.write_text(f'bwlimit = "{text}"\nsize = "{text}"\n')
    table = read_settings(file)
    assert table is not None
    kinds = {"bwlimit": Setting(SettingKind.TEXT), "size": Setting(SettingKind.SIZE, 0)}
    assert table.read(kinds)["size"] == size

    def sync(*words: str) -> int:
        request = read_request(parse_sync([*words, "a", "b"]), lambda path: b"")
        return max(request.options.bandwidth, request.options.max_size or 0)

    assert sync(f"--max-size={text}") == size
    (tmp_path / "rdc").mkdir(exist_ok=True)
    (tmp_path / "rdc/config.toml").write_text(f'bwlimit = "{text}"\n')
    (from_file,) = default_words(SYNC_OPTIONS, {"XDG_CONFIG_HOME": str(tmp_path)})
    (from_variable,) = default_words(SYNC_OPTIONS, {"RDC_BWLIMIT": text})
    assert from_file.word == from_variable.word == f"--bwlimit={text}"
    if 1 << 20 <= size < SIZE_LIMIT:
        assert sync(from_file.word) == size
        assert read_memory(parse_scan([f"--memory={text}"])) == size
    least = parse_words([f"--min-size={text}"], DUPES_OPTIONS, {}, command="rdc dupes").last("--min-size")
    assert least is not None
    assert read_size("--min-size", least.value) == size


@given(st.integers(0, 10**17))
def test_what_is_printed_can_be_typed(size: int) -> None:
    """A printed size, typed, is the size but for the digits that were not printed."""
    again = parse_size(size_text(size))
    assert again is not None
    assert abs(again - size) <= size * 0.05
