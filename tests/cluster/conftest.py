"""Engines that several tests use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.clusters import dask_cluster


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as url:
        yield url


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """The engine of this name, begun if need be."""
    name: str = request.param
    return name if ":" in name else str(request.getfixturevalue(name))
