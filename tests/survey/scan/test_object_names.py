"""Whatever names a bucket has: each object below a URL counts once, whole or in slices."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.objects.object_store import ObjectStore
from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanSlice
from rdc.survey.parts.merge import PartSource, merge_parts
from rdc.survey.parts.part_file import encode_part
from rdc.survey.report.terminal import scan_json
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.summary import report_of
from tests.support.share import examples


class Bucket:
    """A bucket in memory, with the rules of S3 for names and pages."""

    def __init__(self, contents: Mapping[str, bytes], page: int) -> None:
        self._contents = contents
        self._page = page

    def ask(self, method: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        assert (method, asked["Delimiter"]) == ("list_objects_v2", "/")
        prefix, begin = asked["Prefix"], int(asked.get("ContinuationToken", 0))
        names = sorted(
            {
                key if "/" not in key[len(prefix) :] else key[: key.index("/", len(prefix)) + 1]
                for key in self._contents
                if key.startswith(prefix)
            },
            key=str.encode,
        )
        end = begin + min(self._page, asked.get("MaxKeys", self._page))
        objects = [name for name in names[begin:end] if "/" not in name[len(prefix) :]]
        return {
            "Contents": [
                {"Key": name, "Size": len(self._contents[name]), "ETag": f'"{name}"'} for name in objects
            ],
            "CommonPrefixes": [{"Prefix": name} for name in names[begin:end] if name not in objects],
            "IsTruncated": end < len(names),
            "NextContinuationToken": f"{end}",
        }

    def read(self, bucket: str, key: str, offset: int, length: int, *, size: int, version: int) -> bytes:
        assert (bucket, offset, size, version > 0) == ("bucket", 0, length, True)
        return self._contents[key][:length]


NAMES = st.text("ab/.-é", min_size=1, max_size=8)


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(NAMES, st.integers(0, 2), max_size=14), NAMES, st.integers(1, 4), st.integers(1, 3))
def test_each_object_counts_once(sizes: dict[str, int], name: str, page: int, of: int) -> None:
    name = name.strip("/")
    contents = {key: key.encode() * size for key, size in sizes.items()}
    bucket = Bucket(contents, page)
    below = {key: text for key, text in contents.items() if not name or f"{key}/".startswith(f"{name}/")}
    objects = {key: text for key, text in below.items() if text or not key.endswith("/")}
    url = f"s3://bucket/{name}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ObjectStore, "__init__", lambda *_: None)
        patch.setattr(ObjectStore, "_ask", bucket.ask)
        patch.setattr(ObjectStore, "read", bucket.read)
        report = report_of(survey([url], ScanOptions(compress=False)))
        slices = [ScanOptions(compress=False, slice=ScanSlice(number, of)) for number in range(1, of + 1)]
        parts = [b"".join(encode_part(survey([url], one))) for one in slices]
    assert (report.files, report.bytes) == (len(objects), sum(map(len, objects.values())))
    assert report.exit is (ExitCode.OK if below or not name else ExitCode.PARTIAL)
    sources = [PartSource(f"p{number}", partial(io.BytesIO, part)) for number, part in enumerate(parts)]
    assert scan_json(report_of(merge_parts(sources, DEFAULT_MEMORY))) == scan_json(report)
