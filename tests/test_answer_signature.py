"""Signatures of answers, checked by all means that Python may have."""

import sys
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from luthier.submission.answer_signature import check_with, signed_text

PRIVATE = Ed25519PrivateKey.generate()
PUBLIC = PRIVATE.public_key().public_bytes_raw()


@pytest.fixture(params=["libcrypto", "its own libcrypto", "cryptography"])
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that has only this."""
    hidden = {"libcrypto": "cryptography.exceptions", "its own libcrypto": "_hashlib", "cryptography": "ctypes"}[
        request.param
    ]
    monkeypatch.setitem(sys.modules, hidden, None)


def check() -> Callable[[bytes, bytes], bool]:
    found = check_with(PUBLIC)
    assert found is not None
    return found


@pytest.mark.usefixtures("without")
def test_only_the_right_signature_is_valid() -> None:
    text = signed_text(b"n" * 32, b"request", b"answer\0\n")
    right = PRIVATE.sign(text)
    is_valid = check()
    assert is_valid(right, text)
    for place in (0, 31, 32, 63):
        wrong = bytearray(right)
        wrong[place] ^= 1
        assert not is_valid(bytes(wrong), text)
    for signature in (b"", right[:-1], right + b"\0", bytes(64), b"\xff" * 64):
        assert not is_valid(signature, text)
    for other in (text[:-1], text + b"\0", b"", signed_text(b"m" * 32, b"request", b"answer\0\n")):
        assert not is_valid(right, other)
    assert is_valid(right, text)  # the same function, again


@given(st.binary(max_size=80), st.binary(max_size=200))
def test_any_bytes_are_no_signature(signature: bytes, text: bytes) -> None:
    assert not check()(signature, text)


@pytest.mark.usefixtures("without")
def test_another_key_fits_nothing() -> None:
    other = check_with(Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    assert other is not None
    assert not other(PRIVATE.sign(b"text"), b"text")


def test_a_python_without_ed25519_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ctypes", "cryptography.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    assert check_with(PUBLIC) is None
