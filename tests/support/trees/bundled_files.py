"""Many small files, and their edited versions."""

from __future__ import annotations

from rdc.limits import BUNDLED_FILE_BYTES
from tests.support.running.delta_sync import edited, text

SIZES = [1_100, 1_500, 2_047, 2_048, 5_000, 16_000, 40_000, 65_536, 65_537, 90_000, BUNDLED_FILE_BYTES]
OLD = {f"d{row % 3}/f{row:02}": text(row, size) for row, size in enumerate(SIZES)}
NEW = {name: edited(content, row)[: len(content)] for row, (name, content) in enumerate(OLD.items())}
