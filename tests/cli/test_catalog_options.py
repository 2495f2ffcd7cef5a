"""--catalog and --no-catalog: the last one decides, and a missing catalog is a usage error."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.store import USER_CATALOG
from rdc.cli.environment import parse_words
from rdc.cli.options.own_places import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.errors import UsageError


def choice(*words: str) -> CatalogChoice:
    return read_choice(parse_words(words, (CATALOG_GROUP,), {}, command="rdc sync"))


def test_the_last_one_decides() -> None:
    assert choice() == CatalogChoice()
    assert choice("--catalog=a", "--catalog", "b") == CatalogChoice("b")
    assert choice("--catalog=a", "--no-catalog") == CatalogChoice(off=True)
    assert choice("--no-catalog", "--catalog=a") == CatalogChoice("a")
    assert choice("--catalog=", "--no-catalog") == CatalogChoice(off=True)
    with pytest.raises(UsageError, match="--catalog needs a directory"):
        choice("--no-catalog", "--catalog=")


def test_what_a_sync_gets(tmp_path: Path) -> None:
    with choice().store() as store:
        assert store is USER_CATALOG
    with choice("--no-catalog").store() as store:
        assert store is None
    with choice(f"--catalog={tmp_path}/c").store() as store:
        assert isinstance(store, Catalog)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"RDC_CATALOG": "off", "HOME": "/home/someone"}, "RDC_CATALOG is off"),
        ({"HOME": ""}, "RDC_CATALOG is not set, nor is HOME"),
        ({"RDC_CATALOG": "", "HOME": ""}, "RDC_CATALOG is not set, nor is HOME"),
    ],
)
def test_a_verb_about_the_catalog_says_why_there_is_none(
    environ: dict[str, str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        choice().catalog(environ)
    assert str(refused.value) == f"there is no catalog ({why}); name its directory with --catalog=DIR"
    choice(f"--catalog={tmp_path}/c").catalog(environ).close()
