"""rdc.zstd is python-zstandard's own C module, whoever imports it first."""

from __future__ import annotations

import subprocess
import sys

import pytest

ORDERS = {
    "first": "from rdc.zstd import zstandard as ours; import zstandard as theirs",
    "last": "import zstandard as theirs; from rdc.zstd import zstandard as ours",
}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("order", ORDERS)
def test_its_classes_are_those_of_the_package(order: str) -> None:
    code = (
        f"{ORDERS[order]}\n"
        "assert ours.ZstdError is theirs.ZstdError\n"
        "assert ours.ZstdCompressor is theirs.ZstdCompressor\n"
        "assert theirs.ZstdDecompressor().decompress(ours.ZstdCompressor().compress(b'text')) == b'text'\n"
        "try: theirs.ZstdDecompressor().decompress(b'no frame')\n"
        "except ours.ZstdError: print('caught')\n"
    )
    assert run(code) == "caught\n"


def test_the_package_around_it_is_not_loaded() -> None:
    code = "import sys, rdc.zstd; print({'zstandard', 'platform', 'typing', 're'} & set(sys.modules))"
    assert run(code) == "set()\n"


def test_where_there_is_no_such_module_the_package_is_asked() -> None:
    code = (
        "import rdc.zstd, sys\n"
        "assert 'zstandard' not in sys.modules\n"
        "rdc.zstd.EXTENSION = 'zstandard.not_built'\n"
        "ours = rdc.zstd._load()\n"
        "import zstandard\n"
        "print(ours is zstandard)\n"
    )
    assert run(code) == "True\n"
