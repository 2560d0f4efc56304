"""Signs with keys in a hardware module (PKCS #11), which never leave it: root, node and log keys (docs/keys.md).

Instead of a private key in PEM, the key file holds one line, a PKCS #11 URI (RFC 7512):

    pkcs11:token=rgs;object=root?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=/etc/rgs/pin

The algorithm is Ed25519 (CKM_EDDSA). A URI with other attributes, a PIN in the URI, and another kind of key are errors.
The driver, `python-pkcs11`, is imported only if a key file holds a URI.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from rgs.core.errors import FormatError, UnavailableError
from rgs.core.statements import key_fingerprint
from rgs.node.files import decode_ascii, read_whole
from rgs.node.parts import part

SCHEME: Final = "pkcs11:"
_ED25519_POINT: Final = b"\x04\x20"
"""CKA_EC_POINT is an OCTET STRING around the 32 bytes."""
_SAFE: Final = "/.-_~"
_ED25519_OID: Final = bytes.fromhex("06032b6570")
"""1.3.101.112 in DER (RFC 8410), as CKA_EC_PARAMS."""
_DRIVER: Final = "driver for hardware modules: python-pkcs11 of requirements/runtime.txt"


@dataclass(frozen=True, slots=True)
class KeyAddress:
    """The place of a key: the labels of token and object, the module's library, the file that holds the PIN."""

    token: str
    object: str
    module: Path
    pin: Path


def format_address(address: KeyAddress) -> str:
    """The URI. Inverse of `parse_address`."""
    token, object_, module, pin = (
        quote(str(value), safe=_SAFE) for value in (address.token, address.object, address.module, address.pin)
    )
    return f"{SCHEME}token={token};object={object_}?module-path={module}&pin-source={pin}"


def parse_address(uri: str) -> KeyAddress:
    """The parts of a URI with exactly these four attributes in this order. FormatError, which never quotes the URI."""
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    pairs = [part_.partition("=") for part_ in (*path.split(";"), *query.split("&"))]
    values = [unquote(value) for _, _, value in pairs]
    names = [name for name, _, _ in pairs]
    if names == ["token", "object", "module-path", "pin-source"] and all(values):
        address = KeyAddress(values[0], values[1], Path(values[2]), Path(values[3]))
        if format_address(address) == uri and address.module.is_absolute() and address.pin.is_absolute():
            return address
    raise FormatError(
        "the address of a key in a module is pkcs11:token=…;object=…?module-path=…&pin-source=… with absolute paths",
        field="pkcs11",
    )


def is_address(content: bytes) -> bool:
    """Whether a key file holds an address instead of a key."""
    return content.startswith(SCHEME.encode("ascii"))


class HsmSigner:
    """A signer with a key in a module. Thread-safe: one signature at a time. Its session stays open until the process
    ends: closing it would log out every session of the token.
    """

    def __init__(self, address: KeyAddress) -> None:
        """Log in and find the key. UnavailableError if module, token, PIN or key cannot be used."""
        self._lock = threading.Lock()
        driver = part("pkcs11", _DRIVER)
        pin = _read_pin(address)
        self._mechanism = driver.Mechanism.EDDSA
        try:
            token = driver.lib(str(address.module)).get_token(token_label=address.token)
            try:
                session = token.open(user_pin=pin)
            except driver.UserAlreadyLoggedIn:  # by another key of the token: a login is valid for the whole process
                session = token.open()
            find = session.get_key
            self._key = find(object_class=driver.ObjectClass.PRIVATE_KEY, label=address.object)
            public = find(object_class=driver.ObjectClass.PUBLIC_KEY, label=address.object)
            point = bytes(public[driver.Attribute.EC_POINT])
        except (driver.PKCS11Error, RuntimeError, OSError) as error:
            raise _unavailable(error, address) from None
        if not point.startswith(_ED25519_POINT) or len(point) != len(_ED25519_POINT) + 32:
            raise FormatError(f"the key {address.object} of token {address.token} is not Ed25519", field="pkcs11")
        self._address = address
        self._error: type[Exception] = driver.PKCS11Error
        self.public_key = point[len(_ED25519_POINT) :]
        self.keyid = key_fingerprint(self.public_key)

    def sign(self, message: bytes) -> bytes:
        """The Ed25519 signature (64 bytes), made in the module. UnavailableError if the module fails."""
        try:
            with self._lock:
                return bytes(self._key.sign(message, mechanism=self._mechanism))
        except self._error as error:
            raise _unavailable(error, self._address) from None

    def __repr__(self) -> str:
        return f"HsmSigner({self.keyid})"


def make_module_key(address: KeyAddress) -> bytes:
    """Make an Ed25519 key pair in the module under the address's label; its public key, 32 bytes. UnavailableError if
    the module cannot, or has such a label.
    """
    driver, pin = part("pkcs11", _DRIVER), _read_pin(address)
    try:
        with (
            driver.lib(str(address.module)).get_token(token_label=address.token).open(user_pin=pin, rw=True) as session
        ):
            if list(session.get_objects({driver.Attribute.LABEL: address.object})):
                raise UnavailableError(
                    f"token {address.token} has a key {address.object}: name another",
                    field="pkcs11",
                    value=address.object,
                )
            curve = {driver.Attribute.EC_PARAMS: _ED25519_OID}
            parameters = session.create_domain_parameters(driver.KeyType.EC_EDWARDS, curve, local=True)
            public, _private = parameters.generate_keypair(store=True, label=address.object)
            point = bytes(public[driver.Attribute.EC_POINT])
    except (driver.PKCS11Error, RuntimeError, OSError) as error:
        raise _unavailable(error, address) from None
    return point[len(_ED25519_POINT) :]


def _read_pin(address: KeyAddress) -> str:
    return decode_ascii(read_whole(address.pin, "PIN", secret=True), address.pin.name).strip()


def _unavailable(error: Any, address: KeyAddress) -> UnavailableError:
    """The error names only the exception (TokenNotPresent, PinIncorrect): its text may hold secrets."""
    return UnavailableError(
        f"the key {address.object} of token {address.token} cannot be used: {type(error).__name__}", field="pkcs11"
    )
