"""The signature of an answer about a submitted job: Ed25519, checked with what Python has loaded already.

Imported before every job by `luthier submit`, so it imports nothing by itself.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

NONCE_BYTES = 32
KEY_BYTES = 32
NONCE_HEADER = "Luthier-Nonce"
SIGNATURE_HEADER = "Luthier-Signature"

_PREFIX = b"luthier submission 1\n"
_ED25519 = 1087  # NID_ED25519 of OpenSSL

Check = Callable[[bytes, bytes], bool]
"""Whether a signature (first) belongs to a text (second)."""


def signed_text(nonce: bytes, request: bytes, answer: bytes) -> bytes:
    """What the server signs: with the nonce and the request, so that the answer is of no use for another question."""
    import hashlib

    return _PREFIX + nonce + hashlib.sha256(request).digest() + answer


def check_with(key: bytes) -> Check | None:
    """A function that checks signatures with this public key; None where Python has no Ed25519."""
    library = _libcrypto()
    return _check_by_package(key) if library is None else _check_by_libcrypto(library, key)


def _libcrypto() -> "CDLL | None":
    """OpenSSL's library, found without `ctypes.util.find_library`, which starts programs."""
    try:
        import _hashlib

        loaded = [_hashlib.__file__]  # symbols of the libraries that it was linked with are found through it
    except (ImportError, AttributeError):
        loaded = []
    try:
        from ctypes import CDLL
    except ImportError:
        return None
    for name in (*loaded, "libcrypto.so.3", "libcrypto.so.1.1"):
        try:
            library = CDLL(name)
            library.EVP_DigestVerify  # noqa: B018 - an AttributeError if it is too old, or not exported
        except (OSError, AttributeError):
            continue
        return library
    return None


def _check_by_libcrypto(library: "CDLL", key: bytes) -> Check | None:
    from ctypes import c_char_p, c_int, c_size_t, c_void_p

    library.EVP_PKEY_new_raw_public_key.argtypes = (c_int, c_void_p, c_char_p, c_size_t)
    library.EVP_DigestVerifyInit.argtypes = (c_void_p,) * 5
    library.EVP_DigestVerify.argtypes = (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t)
    library.EVP_MD_CTX_free.argtypes = (c_void_p,)
    library.EVP_PKEY_new_raw_public_key.restype = library.EVP_MD_CTX_new.restype = c_void_p
    public = library.EVP_PKEY_new_raw_public_key(_ED25519, None, key, len(key))
    if not public:
        return None

    def is_valid(signature: bytes, text: bytes) -> bool:
        context = library.EVP_MD_CTX_new()
        is_ready = context and library.EVP_DigestVerifyInit(context, None, None, None, public) == 1
        found = is_ready and library.EVP_DigestVerify(context, signature, len(signature), text, len(text)) == 1
        library.EVP_MD_CTX_free(context)
        return bool(found)

    return is_valid


def _check_by_package(key: bytes) -> Check | None:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        public = Ed25519PublicKey.from_public_bytes(key)
    except (ImportError, ValueError):
        return None

    def is_valid(signature: bytes, text: bytes) -> bool:
        try:
            public.verify(signature, text)
        except InvalidSignature:
            return False
        return True

    return is_valid
