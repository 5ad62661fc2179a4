"""An export holds one image at a time: its memory is far below the size of its data."""

from __future__ import annotations

import pytest

from tests.benchmarks.bench_export import MEMORY_LIMIT_MB, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("streams"))
    world.build(1_000, 512)
    return world


@pytest.mark.field_case(36)
@pytest.mark.parametrize("name", ["crochum", "parquet"])
def test_an_export_of_more_data_than_its_limit_stays_below_the_limit(world: World, name: str):
    assert world.megabytes > MEMORY_LIMIT_MB, "too little data to show anything"
    assert world.export(name).megabytes < MEMORY_LIMIT_MB
