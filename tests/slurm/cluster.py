"""A throw-away Slurm on this machine: munge, one controller, several emulated nodes, all in a folder of their own.

`python -m tests.slurm.cluster` brings it up as its own children, obeys orders from its input, and takes everything down
when that input ends: also when whoever started it was killed. `Cluster` is the other end of that line.

Orders are `start NAME`, `stop NAME` (the daemon ends politely; jobs go on) and `kill NAME` (-9; a node dies with all
that runs on it), where NAME is `slurmctld`, a node or, with `--accounting`, `slurmdbd`; `clear slurmctld` makes a
stopped controller forget all jobs, and what it had not yet told the accounting.
"""

import argparse
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.slurm import accounting

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
STATES = ("sinfo", "--noheader", "--Node", "--partition=main", "--format=%t")

CONFIG = """
ClusterName=luthier
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,sched_interval=1,batch_sched_delay=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
SlurmdTimeout=5
SlurmctldTimeout=10
MessageTimeout=5
MinJobAge=300
KillWait=2
CompleteWait=0
InactiveLimit=0
Waittime=0
AccountingStorageType={accounting}
JobCompType=jobcomp/none
{memory}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=10
"""
NODE = "NodeName={name} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} CPUs={cpus} RealMemory=4096 State=UNKNOWN"

MEMORY_CGROUP = Path("/sys/fs/cgroup/memory")
_NODE_VARIABLE = "LUTHIER_EMULATED_NODE"
_PATIENCE_S = 60.0
_SOON_S = 20.0
_BECOME_SUBREAPER = 36  # prctl(2): whatever daemons leave behind becomes a child of this process


def programs() -> str:
    """The PATH on which Slurm's programs, the daemons included, are found."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *FOLDERS])


def missing_program(*more: str) -> str | None:
    """The first program of Slurm's or munge's, or of those named, that is not installed."""
    return next((program for program in (*PROGRAMS, *more) if shutil.which(program, path=programs()) is None), None)


def wait_until(true: Callable[[], bool], what: str, patience_s: float = _PATIENCE_S) -> None:
    """Wait for something that no file or process can tell of."""
    give_up_at = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"waited {patience_s:g} s until {what}")
        time.sleep(0.02)


class Cluster:
    """A running Slurm, as seen by its users; `environment` makes Slurm's commands talk to it."""

    def __init__(self, guardian: "subprocess.Popen[str]") -> None:
        self._guardian = guardian
        self.environment = {"SLURM_CONF": self._said(), "PATH": programs()}
        self.nodes = self._said().split()

    def order(self, order: str) -> None:
        """Have one of the daemons started, stopped or killed; returns when that is done."""
        assert self._guardian.stdin is not None
        self._guardian.stdin.write(f"{order}\n")
        self._guardian.stdin.flush()
        assert self._said() == "done", f"{order}: not done"

    def run(self, *argv: str) -> str:
        """Run one of Slurm's commands to its end."""
        done = subprocess.run(
            argv, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{argv}: {done.stderr.decode()}"
        return done.stdout.decode()

    def wait_idle(self) -> None:
        """Wait until every node is free; one that an earlier test left in a bad state is started anew."""
        try:
            wait_until(self._is_idle, "all nodes are idle", _SOON_S)
        except TimeoutError:
            for node in sorted(set(self.run("sinfo", "--noheader", "--Node", "--format=%N").split())):
                self.lose(node)
            wait_until(self._is_idle, "all nodes are idle")

    def _is_idle(self) -> bool:
        return set(self.run(*STATES).split()) == {"idle"}

    def lose(self, node: str) -> None:
        """Kill a node with all that runs on it, tell the controller, and bring it back, empty.

        Left to itself the controller goes on to send it jobs, and holds them back for two minutes when they bounce.
        """
        self.order(f"kill {node}")
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        self.order(f"start {node}")
        try:
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        except AssertionError as error:
            if "Invalid node state" not in str(error):  # it has come back by itself
                raise

    def forget_jobs(self) -> None:
        """Make the controller lose its memory of all jobs; what runs is left to the nodes."""
        for order in ("stop", "clear", "start"):
            self.order(f"{order} slurmctld")

    def _said(self) -> str:
        assert self._guardian.stdout is not None
        return self._guardian.stdout.readline().strip()


@contextmanager
def cluster(nodes: int = 2, cpus: int = 4, *, accounted: bool = False) -> Iterator[Cluster]:
    """A Slurm that is there for the length of a `with`, and not much longer, whatever happens to this process."""
    options = ["--nodes", str(nodes), "--cpus", str(cpus), *(["--accounting"] if accounted else [])]
    guardian = subprocess.Popen(
        [sys.executable, "-m", "tests.slurm.cluster", *options],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C ends this process first
    )
    try:
        up = Cluster(guardian)
        assert up.nodes, "Slurm did not start"
        yield up
    finally:
        guardian.communicate()


class Daemons:
    """The guardian's side: the daemons as children of this process."""

    def __init__(self, folder: Path, nodes: Sequence[str]) -> None:
        self._folder = folder
        self._nodes = nodes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        own = {"SLURM_CONF": folder / "slurm.conf", "MYSQL_UNIX_PORT": accounting.socket_of(folder), "PATH": programs()}
        self._environment = {**os.environ, **{name: str(value) for name, value in own.items()}}

    def start_all(self) -> None:
        """Bring everything up; returns when jobs can be submitted."""
        files = [f"--{name}-file={self._folder}/munge.{name}" for name in ("key", "pid", "seed", "log")]
        self._spawn("munged", "munged", "--foreground", "--force", f"--socket={self._folder}/munge.socket", *files)
        wait_until((self._folder / "munge.socket").exists, "munged listens")
        if accounting.is_configured(self._folder):
            self._ask(*accounting.installation(self._folder, _user()))
            self._spawn("mariadbd", *accounting.server(self._folder, _user()))
            wait_until(accounting.socket_of(self._folder).exists, "mariadbd listens")
            self.start("slurmdbd")
        for name in ("slurmctld", *self._nodes):
            self.start(name)
        wait_until(lambda: set(self._ask(*STATES).split()) == {"idle"}, "all nodes are idle")

    def start(self, name: str) -> None:
        """Start the controller, the accounting or a node."""
        if name == "slurmctld":
            self._spawn(name, "slurmctld", "-D")
            wait_until(lambda: "is UP" in self._ask("scontrol", "ping"), "slurmctld answers")
        elif name == "slurmdbd":
            self._spawn(name, "slurmdbd", "-D")
            wait_until(lambda: self._ask("sacctmgr", "--noheader", "list", "users") != "", "slurmdbd answers")
        else:
            self._spawn(name, "slurmd", "-D", "-N", name)

    def stop(self, name: str) -> None:
        """End a daemon politely; what runs on a node goes on."""
        self._running[name].terminate()
        self._running.pop(name).wait()

    def kill(self, name: str) -> None:
        """End a daemon, and what runs on a node with it."""
        self._running[name].kill()
        self._running.pop(name).wait()
        for root in (pid for pid in below(os.getpid()) if _node_of(pid) == name):
            for pid in [root, *below(root)]:
                _end(pid)

    def clear(self, _: str) -> None:
        """Make the controller, which must be stopped, forget every job."""
        for kind in ("job_state*", "dbd.messages*"):
            for file in (self._folder / "state").glob(kind):
                file.unlink()

    def stop_all(self) -> None:
        """End every process that came of this one, jobs included."""
        while pids := below(os.getpid()):
            for pid in pids:
                _end(pid)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)

    def _spawn(self, name: str, *argv: str) -> None:
        with (self._folder / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(
                argv,
                env={**self._environment, _NODE_VARIABLE: name},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _ask(self, *argv: str) -> str:
        done = subprocess.run(argv, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.stdout.decode()


def below(root: int) -> list[int]:
    """The children of a process, their children, and so on."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(folder.name))
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def _node_of(pid: int) -> str | None:
    """The node a daemon of Slurm's belongs to: slurmd hands the variable down to the processes that run its jobs."""
    with suppress(OSError):
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(f"{_NODE_VARIABLE}=".encode()):
                return variable.decode().partition("=")[2]
    return None


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def configure(folder: Path, names: Sequence[str], cpus: int, *, accounted: bool) -> None:
    """Write the configuration of a cluster that keeps to its folder and to ports that are free now."""
    host = socket.gethostname().partition(".")[0]
    port, accounting_port, *node_ports = _free_ports(2 + len(names))
    nodes = [
        NODE.format(name=name, host=host, port=node_port, cpus=cpus)
        for name, node_port in zip(names, node_ports, strict=True)
    ]
    limits_memory = os.access(MEMORY_CGROUP, os.W_OK) and (MEMORY_CGROUP / "memory.limit_in_bytes").exists()
    memory = "TaskPlugin=task/cgroup" if limits_memory else "TaskPlugin=task/none\nJobAcctGatherParams=OverMemoryKill"
    config = CONFIG.format(
        host=host,
        port=port,
        user=_user(),
        folder=folder,
        accounting=accounting.configure(folder, accounting_port, _user()) if accounted else "accounting_storage/none",
        memory=memory,
        nodes="\n".join(nodes),
    )
    (folder / "slurm.conf").write_text(config)
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n" + ("ConstrainRAMSpace=yes\n" * limits_memory))
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    for name in ("state", *(f"spool-{name}" for name in names)):
        (folder / name).mkdir()


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _remove_cgroups(names: Sequence[str]) -> None:
    for name in names:
        for root in Path("/sys/fs/cgroup").glob(f"*/slurm_{name}"):
            for folder, _, _ in os.walk(root, topdown=False):
                with suppress(OSError):
                    Path(folder).rmdir()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Be the guardian of a cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--accounting", action="store_true")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    tag = secrets.token_hex(3)  # clusters side by side share the tree of control groups
    names = [f"t{tag}n{number}" for number in range(1, options.nodes + 1)]
    with tempfile.TemporaryDirectory(prefix="luthier-slurm-", ignore_cleanup_errors=True) as path:
        folder = Path(path)
        configure(folder, names, options.cpus, accounted=options.accounting)
        daemons = Daemons(folder, names)
        try:
            daemons.start_all()
            _say(f"{folder}/slurm.conf\n{' '.join(names)}")
            for line in sys.stdin:
                order, name = line.split()
                obey = {"start": daemons.start, "stop": daemons.stop, "kill": daemons.kill, "clear": daemons.clear}
                obey[order](name)
                _say("done")
        finally:
            daemons.stop_all()
            _remove_cgroups(names)


if __name__ == "__main__":
    main()
