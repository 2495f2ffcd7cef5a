"""The C kernel outside Python, under sanitizers: its forms against each other, the rest against loops."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from rdc.kernel import unicode_data
from tests.support.project_paths import KERNEL, NATIVE, TOP
from tests.support.share import examples

# What has a driver of its own, or only works for a binding.
OTHERS = re.compile(
    r".*binding\.c|module\.c|search/.*|hash/blake3_.*|count/.*|samples/.*|sets/.*|shingles/.*"
)


def sources(topic: str) -> list[str]:
    """The C files of a topic, without its binding."""
    return sorted(str(p) for p in (KERNEL / topic).glob("*.c") if not p.name.endswith("binding.c"))


TABLES = str(KERNEL / "cut" / "tables.c")
"""The tables of both hashes: streams.h draws streams by them."""

SOURCES = sorted(str(p) for p in KERNEL.rglob("*.c") if not OTHERS.fullmatch(str(p.relative_to(KERNEL))))
BLOCKS = [name for name in sources("search") if not name.endswith("gap_search.c")]
DRIVEN = {
    "compare": SOURCES,
    "similar": [str(KERNEL / "similarity" / name) for name in ("index.c", "pairs.c")],
    "blocks": BLOCKS,
    "gaps": sources("search"),
    "recipe": sources("recipe"),
    "masking": [str(KERNEL / "x86" / name) for name in ("masking.c", "avx2.c", "scalar.c")],
    "samples": sources("samples"),
    "shingles": sources("shingles"),
    "characters": [str(KERNEL / "shingles" / "characters.c")],
}
CHARACTERS = "b34aa1bb8b624447558e43860a90b86dd08d0b71ca1e4c378986190136a9f667"
"""SHA-256 of what the tables of Unicode 15.0.0 say of every code point."""

FIXTURES = sorted(str(p) for p in (TOP / "fixtures" / "kernel").glob("*.bin"))


def c_files() -> list[Path]:
    return [path for path in KERNEL.rglob("*") if path.suffix in (".c", ".h")]


SANITIZED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Nothing is optimized away that a sanitizer could notice, and a build takes half as long as with -O1."""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for what several drivers are built of."""
    return tmp_path_factory.mktemp("objects")


def build(objects: Path, driver: str, flags: tuple[str, ...]) -> Path:
    """Of each file there is one object for the same flags."""
    place = objects / "".join(flags).replace("/", "")
    place.mkdir(exist_ok=True)
    compiler = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", *flags, f"-I{KERNEL}"]
    parts = []
    for source in sorted({str(NATIVE / f"{driver}.c"), TABLES, *DRIVEN[driver]}):
        part = place / f"{os.path.relpath(source, TOP).replace('/', '-')}.o"
        if not part.exists():
            subprocess.run([*compiler, "-c", source, "-o", part], check=True)
        parts.append(part)
    subprocess.run([*compiler, *parts, "-o", place / driver], check=True)
    return place / driver


def characters_file(objects: Path) -> Path:
    """The numbers that the tables of characters are read from, as drivers take them."""
    path = objects / "characters"
    path.write_bytes(unicode_data.numbers())
    return path


def agreeing_variants(program: Path, seed: int, count: int, *files: str) -> list[str]:
    result = subprocess.run([program, str(seed), str(count), *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{count} streams and {len(files)} files")
    return result.stdout.split("all of ")[1].split()[:-1]


@pytest.mark.parametrize("flags", [(), ("-DRDC_ASSUME_OLD",)], ids=["this CPU", "without extensions"])
def test_variants_agree_under_sanitizers(objects: Path, flags: tuple[str, ...]) -> None:
    program = build(objects, "compare", (*SANITIZED, *flags))
    variants = agreeing_variants(program, 1, examples(150), *FIXTURES)
    assert variants[-1] == "c"
    if platform.machine() in ("x86_64", "aarch64"):
        assert len(variants) > 1


def test_variants_agree_on_many_streams(objects: Path) -> None:
    agreeing_variants(build(objects, "compare", ("-O3",)), 1_000_000, examples(1000))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("driver", ["similar", "blocks", "gaps", "recipe", "masking", "samples", "shingles"])
@pytest.mark.parametrize("flags", [SANITIZED, ("-O3",)], ids=["sanitized", "optimized"])
def test_index_and_search_agree_with_plain_loops(objects: Path, driver: str, flags: tuple[str, ...]) -> None:
    program = build(objects, driver, flags)
    rounds = examples(100)
    more = [characters_file(objects)] if driver == "shingles" else []
    result = subprocess.run([program, "1", str(rounds), *more], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{rounds} rounds from seed 1 agree\n"


def test_the_tables_of_characters_do_not_change(objects: Path) -> None:
    """All code points of Unicode. Other tables make other features: whatever was stored would no longer
    compare."""
    program = build(objects, "characters", SANITIZED)
    printed = subprocess.run([program, characters_file(objects)], check=True, capture_output=True).stdout
    assert printed.count(b"\n") == 0x110000
    assert hashlib.sha256(printed).hexdigest() == CHARACTERS


def test_the_comparison_notices_a_wrong_variant(tmp_path: Path) -> None:
    """One bit of the first product turned, in the look-up and in the bit matrix: the driver must stop, or it
    proves nothing."""
    broken = (KERNEL / "cut" / "tables.h").read_text()
    for table, number in (("rdc_lead_double", "0x00"), ("rdc_lead_matrix", "UINT64_C(")):
        start = broken.index(table)
        broken = broken[:start] + broken[start:].replace(number, f"1^{number}", 1)
    for path in c_files():
        copy = tmp_path / path.relative_to(KERNEL)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(broken if path.name == "tables.h" else path.read_text())
    program = tmp_path / "program"
    copies = [str(tmp_path / Path(source).relative_to(KERNEL)) for source in SOURCES]
    driver = NATIVE
    subprocess.run(
        [
            "cc",
            "-O0",
            f"-I{tmp_path}",
            f"-I{driver}",
            str(driver / "compare.c"),
            *copies,
            "-o",
            str(program),
        ],
        check=True,
    )
    result = subprocess.run([program, "1", "50"], capture_output=True, text=True)
    if platform.machine() in ("x86_64", "aarch64"):
        assert result.returncode != 0
        assert "differs" in result.stderr
        assert "fails its self-check" in result.stderr  # what importing rdc would have said


@pytest.mark.sampled(3)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="plain C is the only form")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("left &= left - 1)", "left = 0)"),  # one hit a step
        ("passed = MIN(passed, ", "passed = AND(passed, "),  # a sieve that lets too few pass
        ("XOR(PRODUCT(maps->out, 0, out), ", "XOR(ZERO, "),  # a wrong product
        ("left += filter_again(", "left += 0 & filter_again("),  # a second look that lets none pass
        ("oldest + BATCH - ring.rows", "0"),  # a lane's bytes that leave it too early
        ("if (in == ring.row)", "if (0)"),  # rows that are not repeated where the ring ends
    ],
)
def test_the_block_search_notices_a_wrong_variant(tmp_path: Path, right: str, wrong: str) -> None:
    changed = []
    for path in c_files():
        text = path.read_text()
        if path.parent.name == "search" and path.name.startswith("vector_") and right in text:
            changed.append(path.name)
            text = text.replace(right, wrong)
        copy = tmp_path / path.relative_to(KERNEL)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text)
    assert len(changed) == 1
    program = tmp_path / "program"
    driver = NATIVE
    copies = [str(tmp_path / Path(source).relative_to(KERNEL)) for source in (*BLOCKS, TABLES)]
    command = ["cc", "-O0", f"-I{tmp_path}", f"-I{driver}", str(driver / "blocks.c"), *copies]
    subprocess.run([*command, "-o", str(program)], check=True)
    result = subprocess.run([program, "1", "100"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "the search differs in round" in result.stderr
