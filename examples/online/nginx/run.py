"""Tune an nginx while it serves: `python examples/online/nginx/run.py`; further options go to `luthier tune`.

It starts a throw-away nginx on loopback and two clients that load a page all the time, tunes how answers are
compressed, and counts the requests that failed meanwhile: none.
"""

import json
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARAMETERS = ("gzip_comp_level=1..9@6", "gzip_buffer=4k,16k,64k", "sendfile=on,off")
START_S = 20.0


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepare(folder: Path, port: int) -> None:
    """Write the page, the template and the first configuration."""
    words = [line.strip() for line in (HERE / "nginx.conf.in").read_text(encoding="utf-8").split()]
    draw = random.Random(1)  # noqa: S311 - not a secret
    page = " ".join(f"{draw.choice(words)}{draw.randrange(100)}" for _ in range(40_000))
    (folder / "index.html").write_text(page, encoding="utf-8")
    user = "user root;\n" if os.geteuid() == 0 else ""  # its workers read a folder of this user
    text = user + (HERE / "nginx.conf.in").read_text(encoding="utf-8").replace("PORT", str(port))
    (folder / "nginx.conf.in").write_text(text, encoding="utf-8")
    for parameter in PARAMETERS:
        name, _, values = parameter.partition("=")
        default = values.partition("@")[2] or values.split(",")[0]
        text = text.replace(f"{{{name}}}", default)
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    (folder / "tmp").mkdir()


def wait_for(port: int) -> None:
    """Wait until the server listens."""
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def tune(folder: Path, port: int, nginx: list[str], options: list[str]) -> int:
    """Call luthier as one would on the command line."""
    command = [sys.executable, "-m", "luthier", "tune", "--online"]
    for parameter in PARAMETERS:
        command += ["-p", parameter]
    command += [
        "--write",
        f"{folder}/nginx.conf.in:{folder}/nginx.conf",
        "--reload",
        " ".join([*nginx, "-s", "reload"]),
    ]
    # The last of three numbers on a line of their own is that of all requests so far.
    command += ["--read", rf"url:http://127.0.0.1:{port}/status regex:^ \d+ \d+ (\d+)", "--rate", "--maximize"]
    command += ["--every", "2s", "--name", f"nginx {folder.name}"]
    print("luthier", shlex.join([*command[3:], *options]), file=sys.stderr)
    return subprocess.run([*command, *options], check=False).returncode


def main(options: list[str]) -> int:
    """Start nginx and its clients, tune, and count the errors."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") or "nginx"
    with tempfile.TemporaryDirectory(prefix="luthier-nginx-") as place:
        folder, port = Path(place), free_port()
        prepare(folder, port)
        nginx = [program, "-p", place, "-c", f"{place}/nginx.conf", "-e", f"{place}/error.log"]
        server = subprocess.Popen([*nginx, "-g", "daemon off;"])
        try:
            wait_for(port)
            url = f"http://127.0.0.1:{port}/index.html"
            users = subprocess.Popen([sys.executable, HERE.parent / "http_load.py", url], stdout=subprocess.PIPE)
            try:
                code = tune(folder, port, nginx, options)
            finally:
                users.terminate()
                counted = json.loads(users.communicate(timeout=60)[0])
        finally:
            server.terminate()
            server.wait(60)
    print(f"served {counted['requests']} requests with {counted['errors']} errors", *counted["first"])
    return code or bool(counted["errors"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
