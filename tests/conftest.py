"""What every test may rely on: nothing it runs sees or touches the catalog of whoever runs the tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_user_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that want a catalog name its directory."""
    monkeypatch.setenv("RDC_CATALOG", "off")
