"""Jobs on files of this machine refuse objects of a store by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rdc
from rdc.errors import UsageError


@pytest.mark.parametrize("job", [rdc.dupes, rdc.dedupe, rdc.similar])
def test_urls_are_refused(
    job: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:/bucket").mkdir(parents=True)
    with pytest.raises(UsageError, match=rf"^s3://bucket: rdc {job.__name__} reads files of this machine"):
        job([".", "s3://bucket"], catalog=None)
    job("./s3://bucket", catalog=None)
