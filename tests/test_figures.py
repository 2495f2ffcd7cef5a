"""The committed figures are drawn from the committed results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts" / "figures.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_are_current_and_well_formed() -> None:
    for name, text in load().figures().items():
        assert (ROOT / "fixtures" / "figures" / name).read_text() == text, "run scripts/figures"
        ET.fromstring(text)  # noqa: S314 - our own file


def test_the_table_of_chunkers_is_the_one_measured() -> None:
    report = json.loads((ROOT / "fixtures" / "bench" / "dedup.json").read_text())
    assert load().dedup_table(report) in (ROOT / "rdc" / "signature" / "FORMAT.md").read_text()
