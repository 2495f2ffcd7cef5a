"""The committed figures and the table of chunkers agree with the committed measurements in fixtures/bench."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

from tests.support.project_paths import TOP

CORPORA = {
    "django": "Django 4.2.1, .2, .16",
    "typescript": "TypeScript 5.8.2, 5.8.3, 5.9.2, 5.9.3",
    "numpy": "numpy 2.2.5, 2.2.6 (binaries)",
    "mui": "MUI 7.3.8, 7.3.9",
    "libreoffice": "LibreOffice 7.4.7 u13, u14 (rebuilt binaries)",
    "opencv": "OpenCV for Python 4.9.0, 4.10.0 (binaries)",
    "pyarrow": "pyarrow 19.0.0, 19.0.1 (binaries)",
    "synth-sqlite": "a generated SQLite database, changed in place",
    "linux": "Linux 6.1.190, 6.1.192",
}


def dedup_table(report: Mapping[str, Any]) -> str:
    """The table of chunkers in rdc/signature/FORMAT.md: unique bytes in per cent of FastCDC's."""
    labels = [label for label in next(iter(report.values()))["4 KiB"] if label != "FastCDC"]
    heads = [label if label == "max = 2 min" else label.removeprefix("max = ") for label in labels]
    lines = ["| corpus | mean | " + " | ".join(heads) + " |", "|" + "---|" * (len(labels) + 2)]
    logs = dict.fromkeys(labels, 0.0)
    for corpus, name in CORPORA.items():
        for i, (mean, row) in enumerate(report[corpus].items()):
            cells = [f"{100 * row[label]['of FastCDC']:.1f}" for label in labels]
            lines.append(f"| {name if i == 0 else ''} | {mean} | " + " | ".join(cells) + " |")
            for label in labels:
                logs[label] += math.log(row[label]["of FastCDC"])
    rows = sum(map(len, report.values()))
    means = [f"{100 * math.exp(total / rows):.2f}" for total in logs.values()]
    return "\n".join([*lines, "| geometric mean | | " + " | ".join(means) + " |"]) + "\n"


def figures_module() -> ModuleType:
    """scripts/figures.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("figures", TOP / "scripts" / "figures.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_are_current_and_well_formed() -> None:
    for name, text in figures_module().figures().items():
        assert (TOP / "fixtures" / "figures" / name).read_text() == text, "run scripts/figures"
        ET.fromstring(text)  # noqa: S314 - our own file


def test_the_table_of_chunkers_is_the_one_measured() -> None:
    report = json.loads((TOP / "fixtures" / "bench" / "dedup.json").read_text())
    assert dedup_table(report) in (TOP / "rdc" / "signature" / "FORMAT.md").read_text()
