"""An empty directory and an unused catalog for each random example."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@contextmanager
def scene() -> Iterator[Path]:
    """An empty directory, and a catalog that nobody has used."""
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        place = Path(top, "scene")
        place.mkdir()
        with patch.dict(os.environ, RDC_CATALOG=f"{top}/catalog"):
            yield place
