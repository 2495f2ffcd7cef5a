"""The zstandard package as messages use it, loaded without its slow __init__."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(script: str) -> None:
    subprocess.run([sys.executable, "-I", "-c", script], check=True)


def test_it_is_the_backend_alone_and_the_packages_own() -> None:
    run(
        "import sys\n"
        "from rdc.lean.zstd import zstandard\n"
        "assert not {'platform', 're', 'typing', 'zstandard'} & set(sys.modules)\n"
        "import zstandard as package\n"
        "assert zstandard.ZstdError is package.ZstdError\n"
        "pressed = package.ZstdCompressor().compress(bytes(100))\n"
        "assert zstandard.ZstdDecompressor().decompress(pressed) == bytes(100)\n"
    )


def test_it_is_the_package_where_that_is_loaded() -> None:
    run(
        "import zstandard as package\n"
        "from rdc.lean.zstd import zstandard\n"
        "assert zstandard is package\n"
    )  # fmt: skip


def test_it_is_the_package_where_there_is_no_such_backend(tmp_path: Path) -> None:
    (tmp_path / "zstandard").mkdir()
    (tmp_path / "zstandard" / "__init__.py").write_text("backend = 'cffi'\n")
    run(
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from rdc.lean.zstd import zstandard\n"
        "assert zstandard.backend == 'cffi'\n"
    )
