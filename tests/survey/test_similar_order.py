"""What a search or a scan says of similar files is a function of the files: not of the order of operands,
of threads, of what a catalog knows, or of files that have nothing to do with them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.store import SignatureStore
from rdc.library.scans import scan
from rdc.library.similar import similar
from rdc.model.similar import SimilarOptions, SimilarReport
from tests.support.share import share
from tests.support.trees.edited_texts import edited, text


def tree(top: Path, seed: int, spacing: int = 150) -> list[Path]:
    """Versions of some texts below three directories, identical files and files of more than a batch among
    them. One edit at most in so many bytes."""
    rng = random.Random(seed)
    tops = [top / name for name in ("new", "mid", "old")]
    contents = []
    for kind in range(4):
        base = text(seed + kind, rng.choice((2_000, 9_000, 150_000)))
        most = 2 + len(base) // spacing
        contents += [edited(base, seed + n, rng.randrange(1, most)) for n in range(rng.randrange(1, 5))]
    for number in range(20):
        path = rng.choice(tops) / rng.choice(("a", "b", ".")) / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.choice(contents))
    return [path for path in tops if path.is_dir()]


def shown(report: SimilarReport) -> str:
    """All of a report but for how many entries were visited."""
    groups = [
        [(f.path_bytes, f.similarity, f.contained, f.like_bytes, f.copies_bytes) for f in g.files]
        for g in report.groups
    ]
    return json.dumps([repr(groups), [repr(pair) for pair in report.folders]])


@pytest.mark.parametrize("seed", share(range(9)))
def test_no_order_is_seen(tmp_path: Path, seed: int) -> None:
    tops = [str(path) for path in tree(tmp_path / "tree", seed)]
    catalog = Catalog(tmp_path / "catalog")
    for folders in (False, True):

        def found(
            paths: list[str], store: SignatureStore | None, workers: int, folders: bool = folders
        ) -> str:
            options = SimilarOptions(workers=workers, folders=folders, threshold=0.4)
            return shown(similar(paths, options, catalog=store))

        wanted = found(tops, None, 1)
        assert wanted == found(tops[::-1], None, 3)
        assert wanted == found(tops[1:] + tops[:1], catalog, 2)
        assert wanted == found(tops, catalog, 2), "from the catalog"


@pytest.mark.parametrize("seed", share(range(9)))
def test_a_scan_sees_no_order_of_paths(tmp_path: Path, seed: int) -> None:
    tops = [str(path) for path in tree(tmp_path / "tree", seed, 2_000)]
    wanted = scan(tops, catalog=None).similar
    assert wanted
    assert wanted == scan(tops[::-1], catalog=None).similar
    assert wanted == scan(tops[1:] + tops[:1], catalog=None).similar


def test_other_files_change_nothing(tmp_path: Path) -> None:
    tops = tree(tmp_path / "tree", 77)
    wanted = shown(similar([*map(str, tops)], catalog=None))
    rng = random.Random(78)
    (tmp_path / "other").mkdir()
    for number in range(300):
        (tmp_path / "other" / f"o{number}").write_bytes(rng.randbytes(rng.randrange(600, 3_000)))
    assert wanted == shown(similar([*map(str, tops), str(tmp_path / "other")], catalog=None))
