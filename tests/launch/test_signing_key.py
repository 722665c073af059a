"""The key with which a server signs."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, NotFoundError
from luthier.submission.answer_signature import check_with, signed_text
from luthier.submission.signing_key import existing_signing_key, kept_signing_key

MAKE = "import sys; from luthier.submission.signing_key import *; sys.stdin.read(); print(kept_signing_key().public)"


def test_servers_that_start_together_get_one_key_that_only_their_user_can_read(tmp_path: Path) -> None:
    # A strict umask must not be needed: the file has its mode when it appears.
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    argv = [sys.executable, "-c", MAKE]
    servers = [
        subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0)
        for _ in range(4)
    ]
    for server in servers:
        assert server.stdin is not None
        server.stdin.close()
    keys = {server.stdout.read() for server in servers if server.stdout is not None}
    for server in servers:
        assert server.wait() == 0
        assert server.stdout is not None
        server.stdout.close()
    assert len(keys) == 1
    (path,) = (tmp_path / "luthier").iterdir()  # and no drafts
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"{existing_signing_key(path).public}\n" in keys


def test_a_key_of_a_server_is_not_made_by_asking_for_it(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="start luthier serve"):
        existing_signing_key(tmp_path / "key.pem")
    assert not list(tmp_path.iterdir())


def test_files_that_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    public = kept_signing_key(path).public
    text = path.read_bytes()
    path.chmod(0o640)
    with pytest.raises(InvalidInputError, match="other users can read"):
        kept_signing_key(path)
    path.chmod(0o600)
    for bad in (b"", text[:60], text.replace(b"M", b"N"), b"\xff" * 99):
        path.write_bytes(bad)
        with pytest.raises(InvalidInputError, match="does not contain an Ed25519 key") as caught:
            kept_signing_key(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(text)
    assert kept_signing_key(path).public == public


def test_a_key_that_openssl_has_made(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True, umask=0o077)
    key = kept_signing_key(path)
    check = check_with(bytes.fromhex(key.public))
    assert check is not None
    signature = bytes.fromhex(key.signature(b"n" * 32, b"request", b"answer"))
    assert check(signature, signed_text(b"n" * 32, b"request", b"answer"))
    assert not check(signature, signed_text(b"n" * 32, b"request", b"answer "))
