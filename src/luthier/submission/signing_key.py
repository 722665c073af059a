"""The key with which a server signs its answers to submitted jobs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError, NotFoundError
from luthier.folders import data_directory
from luthier.store.secret_file import kept_secret, secret_in
from luthier.submission.answer_signature import signed_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; clients have the public one."""

    private: "Ed25519PrivateKey"

    @property
    def public(self) -> str:
        """The public key, as it stands in luthier-submit.conf."""
        return self.private.public_key().public_bytes_raw().hex()

    def signature(self, nonce: bytes, request: bytes, answer: bytes) -> str:
        """The signature of an answer to this request."""
        return self.private.sign(signed_text(nonce, request, answer)).hex()


def kept_signing_key(path: Path | None = None) -> SigningKey:
    """The key in a file, by default in the data folder; it is made when a server first needs it."""
    path = path or _default()
    return _key(path, kept_secret(path, _made))


def existing_signing_key(path: Path | None = None) -> SigningKey:
    """The same key; `NotFoundError` if no server has made it."""
    path = path or _default()
    try:
        return _key(path, secret_in(path))
    except NotFoundError:
        raise NotFoundError(
            f"{path}: no server has made its key here; start luthier serve as this user first, or call "
            "luthier slurm key where the server runs, and give what it prints: --key KEY"
        ) from None


def _default() -> Path:
    return data_directory() / "signing-key.pem"


def _made() -> bytes:
    _require_package()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _key(path: Path, text: bytes) -> SigningKey:
    _require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise InvalidInputError(
            f"{path}: does not contain an Ed25519 key without a password; make one with "
            "openssl genpkey -algorithm ed25519, or delete the file and start luthier serve"
        )
    return SigningKey(private)


def _require_package() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise NotFoundError("signing answers needs cryptography: pip install 'luthier[serve]'") from None
