"""The C kernel outside Python, under sanitizers: its forms against each other, the rest against loops."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KERNEL = ROOT / "rdc" / "kernel"
# What has a driver of its own, or only works for a binding.
OTHERS = re.compile(
    r".*binding\.c|(block_.*|gap_search)\.c|name_(lanes|avx.*)\.c|chunk_table\.c|fold_chunks\.c"
)
SOURCES = sorted(str(p) for p in KERNEL.glob("*.c") if not OTHERS.fullmatch(p.name))
BLOCKS = sorted(str(p) for p in KERNEL.glob("block_*.c"))
DRIVEN = {
    "compare": SOURCES,
    "similar": [str(KERNEL / "trait_index.c"), str(KERNEL / "trait_pairs.c")],
    "blocks": BLOCKS,
    "gaps": [*BLOCKS, str(KERNEL / "gap_search.c")],
    "pieces": [str(KERNEL / name) for name in ("pieces.c", "tiles.c")],
    "blanks": [
        str(KERNEL / name) for name in ("code_blanks.c", "code_avx512.c", "code_avx2.c", "code_plain.c")
    ],
}
FIXTURES = sorted(str(p) for p in (ROOT / "fixtures" / "kernel").glob("*.bin"))


def build(
    folder: Path, *flags: str, compiler: str = os.environ.get("CC", "cc"), driver: str = "compare"
) -> Path:
    program = folder / driver
    command = [compiler, "-std=c11", "-g", "-Wall", "-Wextra", "-Werror", *flags, f"-I{KERNEL}"]
    subprocess.run(
        [*command, str(ROOT / "tests" / "native" / f"{driver}.c"), *DRIVEN[driver], "-o", str(program)],
        check=True,
    )
    return program


def agreeing_forms(program: Path, seed: int, count: int, *files: str) -> list[str]:
    result = subprocess.run([program, str(seed), str(count), *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{count} streams and {len(files)} files")
    return result.stdout.split("all of ")[1].split()[:-1]


@pytest.mark.parametrize("flags", [(), ("-DRDC_ASSUME_OLD",)], ids=["this CPU", "without extensions"])
def test_forms_agree_under_sanitizers(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *flags)
    forms = agreeing_forms(program, 1, 150, *FIXTURES)
    assert forms[-1] == "c"
    if platform.machine() in ("x86_64", "aarch64"):
        assert len(forms) > 1


def test_forms_agree_on_many_streams(tmp_path: Path) -> None:
    agreeing_forms(build(tmp_path, "-O2"), 1_000_000, 1000)


@pytest.mark.parametrize("driver", ["similar", "blocks", "gaps", "pieces", "blanks"])
@pytest.mark.parametrize(
    "flags", [("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"), ("-O3",)]
)
def test_index_and_search_agree_with_plain_loops(tmp_path: Path, driver: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, *flags, driver=driver)
    result = subprocess.run([program, "1", "100"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "100 rounds from seed 1 agree\n"


def test_the_comparison_notices_a_wrong_form(tmp_path: Path) -> None:
    """One bit of one doubling table turned: the driver must stop, or it proves nothing."""
    header = (KERNEL / "tables.h").read_text()
    start = header.index("rdc_lead_double")
    broken = header[:start] + header[start:].replace("0x", "0x1^0x", 1)
    for path in KERNEL.iterdir():
        if path.suffix in (".c", ".h"):
            (tmp_path / path.name).write_text(broken if path.name == "tables.h" else path.read_text())
    program = tmp_path / "compare"
    sources = [str(tmp_path / Path(source).name) for source in SOURCES]
    driver = ROOT / "tests" / "native"
    subprocess.run(
        [
            "cc",
            "-O1",
            f"-I{tmp_path}",
            f"-I{driver}",
            str(driver / "compare.c"),
            *sources,
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


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="plain C is the only form")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("left &= left - 1)", "left = 0)"),  # one hit a step
        ("passed = MIN(passed, ", "passed = AND(passed, "),  # a sieve that lets too few pass
        ("XOR(PRODUCT(maps->out, 0, out), ", "XOR(ZERO, "),  # a wrong product
        ("left += filter_again(", "left += 0 & filter_again("),  # a second look that lets none pass
        ("oldest + TILE - ring.rows", "0"),  # a lane's bytes that leave it too early
        ("if (in == ring.row)", "if (0)"),  # rows that are not repeated where the ring ends
    ],
)
def test_the_block_search_notices_a_wrong_form(tmp_path: Path, right: str, wrong: str) -> None:
    changed = []
    for path in KERNEL.iterdir():
        if path.suffix in (".c", ".h"):
            text = path.read_text()
            if path.name in ("block_body.h", "block_tile.h") and right in text:
                changed.append(path.name)
                text = text.replace(right, wrong)
            (tmp_path / path.name).write_text(text)
    assert len(changed) == 1
    program = tmp_path / "blocks"
    driver = ROOT / "tests" / "native"
    sources = [str(tmp_path / Path(source).name) for source in BLOCKS]
    command = ["cc", "-O1", f"-I{tmp_path}", f"-I{driver}", str(driver / "blocks.c"), *sources]
    subprocess.run([*command, "-o", str(program)], check=True)
    result = subprocess.run([program, "1", "100"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "the search differs in round" in result.stderr
