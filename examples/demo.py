"""`make demo`: tune a real program on this machine, with nothing but Python.

The program is `examples/pack.py`, which compresses a log file of 3 MB to at most 19 % of its size. The default is
what many people would type. Everything this demo writes is in `build/demo`.
"""

import os
import random
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "demo"


def log_file(lines: int) -> str:
    """A log as an I/O server would write it, the same every time."""
    generator = random.Random(1)  # noqa: S311 - made-up data
    now = 1_700_000_000.0
    text = []
    for _ in range(lines):
        now += generator.expovariate(50)
        verb = generator.choice(["open", "read", "write", "close", "seek", "stat", "sync"])
        path = f"/scratch/run{generator.randrange(40)}/part-{generator.randrange(10_000):05d}.h5"
        text.append(f"{now:.3f} node{generator.randrange(64):03d} {verb} {path} {generator.randrange(1 << 22)} bytes\n")
    return "".join(text)


def main() -> int:
    """Write the data, show the command, run it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    data = FOLDER / "server.log"
    data.write_text(log_file(50_000), encoding="utf-8")
    luthier = [sys.executable, "-m", "luthier"]
    options = ["tune", "--name", "demo", "--budget", "45", "--timeout", "30s"]
    parameters = ["codec=lzma,bz2,zlib", "level=1..9@6", "threads=1,2,4", "chunk=16..4096:x4@64"]
    options += [part for parameter in parameters for part in ("-p", parameter)]
    program = [sys.executable, str(HERE / "pack.py"), str(data), "--at-most", "0.19", "--codec", "{codec}"]
    program += ["--level", "{level}", "--threads", "{threads}", "--chunk-kib", "{chunk}"]
    shown = ["luthier", *options, "--", "python", "examples/pack.py", *program[2:]]
    print(f"$ {shlex.join(shown)}\n", flush=True)
    environment = {**os.environ, "XDG_DATA_HOME": str(FOLDER), "LUTHIER_STORE": str(FOLDER / "demo.db")}
    ended = subprocess.run([*luthier, *options, "--", *program], env=environment, check=False)
    print(f"\nshow the result again: {Path(sys.executable).parent}/luthier show 1 --store {FOLDER / 'demo.db'}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
