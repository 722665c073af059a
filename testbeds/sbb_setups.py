"""The three set-ups in which Robert's thesis tunes the burst buffer: their applications, machines and grids."""

from luthier.space import Integer, Space
from luthier.trial import Config
from testbeds.sbb import GB, Application, Node, Sbb


def _power_of_two(name: str, high: int) -> Integer:
    return Integer(name, 1, high, step=2, scale="log", default=8)


# Table 4.3 prints 16 as the largest size of all three pools, which makes 3,125 points; table 4.1 speaks of 4,500, and
# with up to 32 destagers there are as many.
BANDWIDTH_SPACE = Space(
    _power_of_two("workers", 16),
    _power_of_two("ram_destagers", 32),
    Integer("ram_threshold_percent", 10, 90, step=20, default=90),
    _power_of_two("flash_destagers", 32),
    Integer("flash_threshold_percent", 10, 90, step=20, default=90),
)
LATENCY_SPACE = Space(
    Integer("rdma_pollers", 1, 8, step=2, scale="log", default=2),
    Integer("workers", 4, 16, step=4, default=12),
    Integer("ram_destagers", 4, 16, step=4, default=12),
    Integer("ram_cache_gb", 10, 80, step=10, default=80),
    Integer("ram_threshold_percent", 50, 90, step=40, default=90),
)
# Table 5.7 prints thresholds of 50, 60, 70 and 90, which makes 432 points; the text speaks of 540: 80 is missing.
IOR_SPACE = Space(
    Integer("workers", 2, 12, step=2, default=10),
    Integer("ram_destagers", 2, 12, step=2, default=10),
    Integer("ram_cache_gb", 40, 60, step=10, default=60),
    Integer("ram_threshold_percent", 50, 90, step=10, default=90),
)

# Table 2.3, where the size of the caches has no default: the largest (section 2.3.3).
BANDWIDTH_DEFAULT = Config(
    {
        "workers": 10,
        "ram_destagers": 10,
        "ram_threshold_percent": 80,
        "flash_destagers": 10,
        "flash_threshold_percent": 80,
    }
)
LATENCY_DEFAULT = Config(
    {"rdma_pollers": 2, "workers": 10, "ram_destagers": 10, "ram_cache_gb": 80, "ram_threshold_percent": 80}
)
IOR_DEFAULT = IOR_SPACE.default  # section 5.5.2

# Volumes, blocks, processes, cores, networks and cache sizes are those of sections 4.1.1, 4.2.3 and 5.5.2.
BANDWIDTH = Sbb(
    Node(
        cores=8,
        network_bytes_per_s=12.5 * GB,
        worker_bytes_per_s=2 * GB,
        destager_bytes_per_s=2 * GB,
        destager_cores=0.25,
        flash_bytes_per_s=6 * GB,
    ),
    Application(200 * GB, block_bytes=10e6, processes=8),
    {"rdma_pollers": 2, "ram_cache_gb": 40, "flash_cache_gb": 150},
)
LATENCY = Sbb(
    Node(
        cores=32,
        network_bytes_per_s=12.5 * GB,
        worker_bytes_per_s=2 * GB,
        destager_bytes_per_s=GB,
        destager_cores=1.0,
        flash_bytes_per_s=5 * GB,
    ),
    Application(40 * GB, block_bytes=4096, processes=32, read_share=0.75),
    {"flash_destagers": 10, "flash_cache_gb": 1000, "flash_threshold_percent": 80},
)
# No flash here: the second level is the file system itself, which never fills up and which other people use, too. The
# speeds are those that give best, mean, median and spread of table 5.8.
IOR = Sbb(
    Node(
        cores=16,
        network_bytes_per_s=7 * GB,
        worker_bytes_per_s=1.5 * GB,
        destager_bytes_per_s=2.8 * GB,
        destager_cores=0.3,
        flash_bytes_per_s=0.8 * GB,
        ram_evict_bytes_per_s=0.28 * GB,
        stream_cost=0.08,
    ),
    Application(174 * GB, block_bytes=1e6, processes=32),
    {"rdma_pollers": 2, "flash_destagers": 0, "flash_cache_gb": 1000, "flash_threshold_percent": 100},
)
