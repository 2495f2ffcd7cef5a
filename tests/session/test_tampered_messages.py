"""Messages that are not what the remote side sent end in an error of rdc's own, and in no wrong content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.wire.tampered_session import SCENES, Scene, Tampering

pytestmark = pytest.mark.usefixtures("no_catalog")


@pytest.fixture
def no_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDC_CATALOG", "off")


@pytest.mark.parametrize("scene", SCENES)
def test_any_message_tampered_with(scene: Callable[[], Scene], tmp_path: Path) -> None:
    tampering = Tampering(tmp_path / "scene", scene())
    for seed in range(30):
        tampering.attempt(seed)
    assert tampering.ends["STREAM"] > 10
    assert ExitCode.USAGE.name not in tampering.ends
    assert len(tampering.kinds) > 8
