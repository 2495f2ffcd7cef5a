"""The workflow for hosted runners is well-formed, calls what is there, and may do no more than it has to."""

from __future__ import annotations

import importlib
import re
from typing import Any

from tests.support.project_paths import TOP

TEXT = (TOP / ".github" / "workflows" / "release.yml").read_text()
yaml: Any = importlib.import_module("yaml")  # it has no types
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]


def steps() -> list[dict[str, Any]]:
    return [step for job in JOBS.values() for step in job["steps"]]


def test_what_it_calls_is_there() -> None:
    called = re.findall(r"\bscripts/\w+", "\n".join(step.get("run", "") for step in steps()))
    assert sorted(set(called)) == ["scripts/test", "scripts/wheels"]
    assert all((TOP / name).is_file() for name in called)


def test_each_action_has_a_version() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)", name) for name in used)


def test_only_a_tested_tag_is_published() -> None:
    publish = JOBS["publish"]
    assert "refs/tags/v" in publish["if"]
    assert JOBS["build"]["needs"] == "test"
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert [name for name, job in JOBS.items() if "permissions" in job] == ["publish"]
