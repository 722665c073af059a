"""A simulated Smart Burst Buffer: a node with a cache in RAM and one in flash between an application and its files.

Robert's thesis, section 2.3: polling threads take requests from the network, workers put the data into RAM (then the
application goes on), RAM destagers copy it to flash and flash destagers on to the parallel file system. What was copied
stays as a clean copy; while a cache is fuller than its threshold, clean copies are removed in the background. The model
follows what is in both caches in small steps of time, for many configurations at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from luthier.trial import Config

FloatArray: TypeAlias = npt.NDArray[np.float64]

GB = 1e9
STEP_S = 0.5

SWITCH_COST = 0.1
"""Speed lost to switching between threads, for each unit by which the demand for cores exceeds their number."""

LOCK_COST = 0.01
"""How much longer an insertion takes for each further thread that uses the cache's index."""

FORCED_SPEED = 0.25
"""Speed of destagers that copy into a full cache, where they must first make room for each piece."""

LOCKED_OUT = 0.5
"""The share of their time RAM destagers wait for the cache while every insertion has to make room first."""


@dataclass(frozen=True, slots=True)
class Node:
    """The data node and the file system behind it; a destager keeps `destager_cores` of a core busy.

    A device serves `streams` threads at once well and becomes slower by `stream_cost` for each further one.
    """

    cores: int
    network_bytes_per_s: float
    worker_bytes_per_s: float
    destager_bytes_per_s: float
    destager_cores: float
    flash_bytes_per_s: float
    ram_evict_bytes_per_s: float = 2 * GB
    flash_evict_bytes_per_s: float = 1.5 * GB
    files_bytes_per_s: float = 3 * GB
    streams: int = 8
    stream_cost: float = 0.05
    trip_s: float = 15e-6
    poll_s: float = 6e-6
    insert_s: float = 25e-6
    miss_s: float = 3e-4


@dataclass(frozen=True, slots=True)
class Application:
    """Processes that each wait for one request of `block_bytes` after the other, until `volume_bytes` are moved.

    Reads go to random places of a file as large as the volume, which was written through the burst buffer before.
    """

    volume_bytes: float
    block_bytes: float
    processes: int
    read_share: float = 0.0


class Sbb:
    """The run time of an application under every configuration; `fixed` are parameters that are not tuned."""

    def __init__(self, node: Node, application: Application, fixed: Mapping[str, float]) -> None:
        self._node = node
        self._application = application
        self._fixed = dict(fixed)

    def __call__(self, configs: Sequence[Config]) -> FloatArray:
        """The run times in seconds of all configurations."""
        columns = {name: np.full(len(configs), float(value)) for name, value in self._fixed.items()}
        for name in configs[0]:
            columns[name] = np.array([float(config[name]) for config in configs])
        return _Run(self._node, self._application, columns).seconds()


@dataclass(slots=True)
class _Cache:
    """The contents of one cache, in bytes: dirty data is not yet copied to the next level."""

    size: FloatArray
    limit: FloatArray
    dirty: FloatArray = field(init=False)
    clean: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.dirty = np.zeros_like(self.size)
        self.clean = np.zeros_like(self.size)

    @property
    def free(self) -> FloatArray:
        return np.maximum(self.size - self.dirty - self.clean, 0.0)

    def tidy(self, most_bytes: FloatArray) -> FloatArray:
        """Remove clean copies in the background, down to the limit; return how many bytes."""
        removed = np.clip(self.dirty + self.clean - self.limit, 0.0, np.minimum(self.clean, most_bytes))
        self.clean -= removed
        return removed

    def copied(self, moved: FloatArray) -> None:
        """Count bytes as copied to the next level."""
        self.dirty -= moved
        self.clean += moved

    def add(self, dirty: FloatArray, clean: FloatArray) -> None:
        """Put data in, in place of clean copies where there is no room."""
        self.clean -= np.maximum(dirty + clean - self.free, 0.0)
        self.dirty += dirty
        self.clean += clean


class _Run:
    """One run of the application under many configurations at once."""

    def __init__(self, node: Node, application: Application, columns: Mapping[str, FloatArray]) -> None:
        self._node, self._application, self._pools = node, application, columns
        self._ram = _cache(columns["ram_cache_gb"], columns["ram_threshold_percent"])
        self._flash = _cache(columns["flash_cache_gb"], columns["flash_threshold_percent"])
        self._forced = np.zeros_like(self._ram.size)
        if application.read_share:
            self._ram.clean = np.minimum(self._ram.limit, application.volume_bytes)

    def seconds(self) -> FloatArray:
        """The time until all data is accepted; data that is still in the caches then does not count."""
        left = np.full_like(self._ram.size, self._application.volume_bytes)
        elapsed_s = np.zeros_like(left)
        while (running := left > 0.0).any():
            speed = self._speed()
            self._destage(speed)
            accepted = self._accept(speed)
            share = np.minimum(left / np.maximum(accepted, 1.0), 1.0)
            elapsed_s += np.where(running, share * STEP_S, 0.0)
            left -= accepted
        return elapsed_s

    def _speed(self) -> FloatArray:
        """How fast each thread is: pollers spin, and all threads share the cores."""
        pools, node = self._pools, self._node
        copiers = pools["ram_destagers"] * (self._ram.dirty > 0) + pools["flash_destagers"] * (self._flash.dirty > 0)
        asked = (pools["rdma_pollers"] + pools["workers"] + node.destager_cores * copiers) / node.cores
        return 1.0 / (np.maximum(asked, 1.0) * (1.0 + SWITCH_COST * np.maximum(asked - 1.0, 0.0)))

    def _destage(self, speed: FloatArray) -> None:
        """Copy from RAM to flash and from flash to the files; both share the flash, as does the removal of copies."""
        node, ram, flash = self._node, self._ram, self._flash
        rams = self._pools["ram_destagers"] * (ram.dirty > 0)
        flashes = self._pools["flash_destagers"] * (flash.dirty > 0)
        own_bytes_per_s = node.destager_bytes_per_s * speed
        device = node.flash_bytes_per_s / (1.0 + node.stream_cost * np.maximum(rams + flashes - node.streams, 0.0))
        files = node.files_bytes_per_s / (1.0 + node.stream_cost * np.maximum(flashes - node.streams, 0.0))
        inward = STEP_S * _together(rams, own_bytes_per_s * (1.0 - LOCKED_OUT * self._forced), device)
        outward = STEP_S * _together(flashes, own_bytes_per_s, files)
        removed = flash.tidy(STEP_S * node.flash_evict_bytes_per_s * speed)
        squeeze = np.minimum(1.0, STEP_S * device / np.maximum(inward + outward + removed, 1.0))
        outward = np.minimum(outward * squeeze, flash.dirty)
        flash.copied(outward)
        wanted = np.minimum(inward * squeeze, ram.dirty)
        eased = np.minimum(wanted, flash.free)
        moved = eased + np.minimum(FORCED_SPEED * (wanted - eased), flash.clean)
        flash.add(moved, np.zeros_like(moved))
        ram.copied(moved)

    def _accept(self, speed: FloatArray) -> FloatArray:
        """Accept requests; return the bytes of those that were answered."""
        application, node, ram = self._application, self._node, self._ram
        ram.tidy(STEP_S * node.ram_evict_bytes_per_s * speed)
        known = np.minimum(1.0, (ram.dirty + ram.clean) / application.volume_bytes)
        inserted = 1.0 - application.read_share * known
        wish = STEP_S * self._front(speed, known, np.zeros_like(speed))
        self._forced = np.clip(1.0 - ram.free / np.maximum(wish * inserted, 1.0), 0.0, 1.0)
        wish = STEP_S * self._front(speed, known, self._forced * inserted)
        accepted = np.minimum(wish, (ram.free + ram.clean) / inserted)
        dirty = accepted * (1.0 - application.read_share)
        ram.add(dirty, accepted * inserted - dirty)
        return accepted

    def _front(self, speed: FloatArray, known: FloatArray, forced: FloatArray) -> FloatArray:
        """Bytes per second through network, pollers and workers while `forced` of the requests must make room first.

        A closed queueing network: each process waits for its request, and behind those of all others at the slowest
        station (the balanced job bound of Zahorjan et al. 1982, with a station's time divided by its threads).
        """
        application, node, pools = self._application, self._node, self._pools
        block = application.block_bytes
        others = pools["workers"] + pools["ram_destagers"] * (self._ram.dirty > 0) - 1.0
        copy_s = block / node.worker_bytes_per_s + forced * block / node.ram_evict_bytes_per_s
        work_s = (node.insert_s * (1.0 + LOCK_COST * others) + copy_s) / speed
        poll_s = node.poll_s / speed
        wire_s = block / node.network_bytes_per_s
        miss_s = application.read_share * (1.0 - known) * node.miss_s
        slowest_s = np.maximum(np.maximum(poll_s / pools["rdma_pollers"], work_s / pools["workers"]), wire_s)
        alone_s = node.trip_s + wire_s + poll_s + work_s + miss_s
        answered_s: FloatArray = alone_s + (application.processes - 1) * slowest_s
        return application.processes * block / answered_s


def _cache(size_gb: FloatArray, threshold_percent: FloatArray) -> _Cache:
    return _Cache(size_gb * GB, size_gb * GB * threshold_percent / 100.0)


def _together(threads: FloatArray, own_bytes_per_s: FloatArray, device_bytes_per_s: FloatArray) -> FloatArray:
    """Bytes per second of threads that do their own part in parallel and queue for one device."""
    return threads / (1.0 / own_bytes_per_s + threads / device_bytes_per_s)
