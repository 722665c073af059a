from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.trial import Config
from testbeds import sbb_setups
from testbeds.noise import find_noise
from testbeds.sbb import GB, SWITCH_COST, Application, Node, Sbb
from testbeds.testbed import TESTBEDS

NAMES = ["sbb/bandwidth", "sbb/latency", "sbb/ior"]
NODE = Node(16, 10 * GB, worker_bytes_per_s=GB, destager_bytes_per_s=GB, destager_cores=0.5, flash_bytes_per_s=4 * GB)
FIXED = {"rdma_pollers": 2, "flash_destagers": 4, "flash_cache_gb": 1000, "flash_threshold_percent": 80}
CONFIG = Config({"workers": 8, "ram_destagers": 8, "ram_cache_gb": 50, "ram_threshold_percent": 70})

configs = st.fixed_dictionaries(
    {
        "workers": st.integers(1, 32),
        "ram_destagers": st.integers(1, 32),
        "ram_cache_gb": st.integers(5, 100),
        "ram_threshold_percent": st.integers(10, 100),
    }
).map(Config)


def seconds(config: Config, node: Node = NODE, application: Application | None = None) -> float:
    return float(Sbb(node, application or Application(100 * GB, 1e6, 32), FIXED)([config])[0])


@pytest.mark.parametrize("name", NAMES)
def test_many_at_once_are_the_same_as_one_by_one(name: str) -> None:
    testbed = TESTBEDS[name]
    table = testbed.table()
    model = {
        "sbb/bandwidth": sbb_setups.BANDWIDTH,
        "sbb/latency": sbb_setups.LATENCY,
        "sbb/ior": sbb_setups.IOR,
    }[name]
    for number in range(0, len(table), len(table) // 7):
        assert model([testbed.grid.at(number)])[0] == table[number]


@settings(max_examples=15, deadline=None)
@given(configs)
def test_no_run_is_faster_than_the_network_or_the_workers(config: Config) -> None:
    taken_s = seconds(config)
    assert taken_s >= 100 * GB / NODE.network_bytes_per_s
    assert taken_s >= 100 * GB / (float(config["workers"]) * NODE.worker_bytes_per_s)


@settings(max_examples=15, deadline=None)
@given(configs)
def test_what_does_not_fit_into_ram_goes_at_the_pace_of_the_flash(config: Config) -> None:
    beyond_bytes = max(100 - float(config["ram_cache_gb"]), 0.0) * GB
    assert seconds(config) >= beyond_bytes / NODE.flash_bytes_per_s * (1 - 1e-9)


@settings(max_examples=15, deadline=None)
@given(configs)
def test_a_file_that_fits_goes_at_the_pace_of_the_front(config: Config) -> None:
    small = Application(1 * GB, 1e6, 32)
    assert seconds(config, application=small) == pytest.approx(
        seconds(Config({**config, "ram_cache_gb": 100}), application=small)
    )


def test_requests_of_one_process_by_hand() -> None:
    # done within the first step, before any destager has work; three threads share a core
    node = replace(NODE, cores=1)
    slower = 3.0 * (1.0 + SWITCH_COST * 2.0)
    worker_s = node.insert_s + 1e6 / node.worker_bytes_per_s
    request_s = node.trip_s + 1e6 / node.network_bytes_per_s + (node.poll_s + worker_s) * slower
    taken_s = seconds(Config({**CONFIG, "workers": 1}), node, Application(100e6, 1e6, 1))
    assert taken_s == pytest.approx(100 * request_s)


def test_more_threads_than_cores_get_in_each_others_way() -> None:
    few, many = (Config({**CONFIG, "workers": workers}) for workers in (14, 64))
    assert seconds(few) < seconds(many)
    roomy = replace(NODE, cores=128)
    assert seconds(many, roomy) <= seconds(few, roomy)


def test_a_full_flash_holds_everything_up() -> None:
    application = Application(200 * GB, 1e6, 32)
    full = Sbb(NODE, application, {**FIXED, "flash_cache_gb": 40, "flash_destagers": 1})([CONFIG])[0]
    free = Sbb(NODE, application, {**FIXED, "flash_cache_gb": 400, "flash_destagers": 1})([CONFIG])[0]
    assert full > 1.5 * free


@pytest.mark.parametrize("name", ["sbb/latency", "sbb/ior"])
def test_more_memory_never_harms(name: str) -> None:
    grid = TESTBEDS[name].grid
    table = TESTBEDS[name].table().reshape([parameter.size or 0 for parameter in grid.parameters])
    by_size = np.moveaxis(table, grid.names.index("ram_cache_gb"), 0)
    assert (np.diff(by_size, axis=0) <= 1e-9 * table.max()).all()


def test_reuse_asks_for_a_high_threshold_and_writing_for_a_low_one() -> None:
    # Robert's thesis, sections 4.1.1 and 5.5.2
    means = {}
    for name in ("sbb/latency", "sbb/ior"):
        grid = TESTBEDS[name].grid
        table = TESTBEDS[name].table().reshape([parameter.size or 0 for parameter in grid.parameters])
        means[name] = table.reshape(-1, table.shape[-1]).mean(axis=0)
    assert means["sbb/latency"][0] > 1.1 * means["sbb/latency"][-1]
    assert (np.diff(means["sbb/ior"]) > 0).all()


def test_the_published_optimum_of_ior_is_among_the_best() -> None:
    published = {"workers": 10, "ram_destagers": 8, "ram_cache_gb": 60, "ram_threshold_percent": 50}
    ior = TESTBEDS["sbb/ior"]
    assert ior.seconds(published) < 1.005 * ior.table().min()


def test_ior_on_shared_storage_has_the_published_statistics() -> None:
    # Robert's thesis, table 5.8: 16 runs of each configuration
    ior, noise = TESTBEDS["sbb/ior"], find_noise("storage")
    rng = np.random.default_rng(58)
    pairs = list(zip(ior.grid.configs(ior.grid.grid()), ior.table().tolist(), strict=True))
    runs = np.array([[noise.elapsed_s(clean_s, 0.0, config, rng) for _ in range(16)] for config, clean_s in pairs])
    means = runs.mean(axis=1)
    assert [runs.mean(), np.median(runs)] == pytest.approx([197.33, 185.0], rel=0.03)
    assert [means.min(), means.max(), np.median(means)] == pytest.approx([151.75, 327.37, 188.81], rel=0.1)
    assert [runs.std(), means.std()] == pytest.approx([49.49, 34.60], rel=0.1)
    assert [runs.min(), runs.max()] == pytest.approx([136.0, 625.0], rel=0.2)
    low, high = np.quantile(runs, [0.25, 0.75], axis=1, keepdims=True)
    assert (runs > high + 1.5 * (high - low)).sum(axis=1).mean() == pytest.approx(1.0, abs=0.4)
