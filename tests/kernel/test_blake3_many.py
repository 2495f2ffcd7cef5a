"""BLAKE3 over lanes: the same names as the package gives, for every size and any company."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.kernel import blake3_many as naming
from tests.support.project_paths import KERNEL, NATIVE

DATA = random.Random(8).randbytes(150_000)
EDGES = [0, 1, 63, 64, 65, 127, 128, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 4096, 7 * 1024, 16_384, 31_745]


def alone(inputs: list[bytes]) -> bytes:
    return b"".join(blake3(piece).digest() for piece in inputs)


@pytest.mark.parametrize("variant", _kernel.naming_variants())
def test_every_size_with_every_other(variant: str) -> None:
    for size in EDGES:
        for count in (1, 2, 7, 8, 9, 15, 16, 17, 33):
            inputs = [DATA[i : i + size] for i in range(count)]
            assert _kernel.name_inputs(list(inputs), variant) == alone(inputs)
    inputs = [DATA[size : 2 * size + 1] for size in EDGES]
    assert _kernel.name_inputs(list(inputs), variant) == alone(inputs)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(EDGES) | st.integers(0, 40_000)), max_size=40))
def test_any_inputs(parts: list[tuple[int, int]]) -> None:
    inputs = [DATA[start : start + size] for start, size in parts]
    assert naming.name_many(list(inputs)) == alone(inputs)
    for variant in _kernel.naming_variants():
        assert _kernel.name_inputs([memoryview(piece) for piece in inputs], variant) == alone(inputs)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="no naming by sse9"):
        _kernel.name_inputs([b""], "sse9")
    for variant in _kernel.naming_variants():
        with pytest.raises(TypeError):
            _kernel.name_inputs([b"", "text"], variant)  # type: ignore[list-item] # this is the question
        with pytest.raises(TypeError):
            _kernel.name_inputs((b"",), variant)  # type: ignore[arg-type] # this is the question


def test_in_bounds_under_sanitizers(tmp_path: Path) -> None:
    """Pieces that end where their allocation does, in every variant, with nothing read or written outside."""
    program = tmp_path / "name_inputs"
    sources = [str(KERNEL / "hash" / f"blake3_{part}.c") for part in ("lanes", "avx2", "avx512")]
    driver = NATIVE / "name_inputs.c"
    flags = ["-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{KERNEL}"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, str(driver), *sources, "-o", str(program)], check=True)
    result = subprocess.run([str(program)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    names = dict(line.split() for line in result.stdout.splitlines())
    assert set(names) == set(_kernel.naming_variants())
    # The driver's inputs: input i has i * i % 5000 bytes, byte j being (i + 7 j) mod 251.
    inputs = [bytes((i + 7 * j) % 251 for j in range(i * i % 5000)) for i in range(200)]
    digest = 0
    for byte in alone(inputs):
        digest = (digest * 31 + byte) % (1 << 32)
    assert set(names.values()) <= {str(digest)}
