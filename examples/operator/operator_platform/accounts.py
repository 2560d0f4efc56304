"""Accounts: sign-up, sign-in and what stands behind a cookie.

Passwords are kept as argon2id hashes. A cookie holds a random token, of which the file keeps only the hash; no secret
is ever in the page.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import unicodedata
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from . import fields
from .config import Config
from .errors import PlatformError, invalid
from .store.accounts import Account, AccountRows, TakenError
from .store.wallet import WalletBook

Result = TypeVar("Result")

PASSWORD_MIN: Final = 10
PASSWORD_MAX: Final = 256
NICKNAME_MAX: Final = 20
SETTINGS_BYTES_MAX: Final = 4096
ARGON2: Final = {"time_cost": 3, "memory_cost": 65_536, "parallelism": 4, "hash_len": 32, "salt_len": 16}
"""RFC 9106, section 4, second choice: 3 passes over 64 MiB in 4 lanes. Another hash is made anew at sign-in."""
HASHES_AT_ONCE: Final = 2
"""Each takes 64 MiB, and a core for about 50 ms."""
HASHES_WAITING_MAX: Final = 40


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def rfc3339(time_ms: int) -> str:
    """A time as text, with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ms // 1000)) + f".{time_ms % 1000:03d}Z"


def new_token() -> tuple[str, bytes]:
    """A random token, and the hash that is kept of it."""
    token = secrets.token_urlsafe(32)
    return token, hash_of(token)


def hash_of(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode()).digest()


class Passwords:
    """argon2id, a few at a time."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(**ARGON2)
        self._waiting = 0
        self._turn = asyncio.Semaphore(HASHES_AT_ONCE)
        self._nobody = self._hasher.hash(secrets.token_urlsafe(16))

    def hash_now(self, password: str) -> str:
        """The hash of a password, in this thread."""
        found: str = self._hasher.hash(password)
        return found

    async def hash(self, password: str) -> str:
        """The hash of a password."""
        return await self._in_turn(self.hash_now, password)

    async def verify(self, known: str | None, password: str) -> bool:
        """Whether the password is the right one. An account that is not there takes the same time."""
        is_right = await self._in_turn(self._verify, known or self._nobody, password)
        return is_right and known is not None

    async def _in_turn(self, work: Callable[..., Result], *values: str) -> Result:
        """Do it in a thread, when it is its turn. BUSY if too many wait: memory and cores are for those who play."""
        if self._waiting >= HASHES_WAITING_MAX:
            raise PlatformError("BUSY", "too many people sign in; try again in a few seconds", 503)
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work, *values)
        finally:
            self._waiting -= 1

    def is_old(self, known: str) -> bool:
        """Whether the hash has other parameters than those of today."""
        return bool(self._hasher.check_needs_rehash(known))

    def _verify(self, known: str, password: str) -> bool:
        try:
            return bool(self._hasher.verify(known, password))
        except (VerifyMismatchError, InvalidHashError):
            return False


class Accounts:
    """Sign-up and sign-in of players."""

    def __init__(self, config: Config, rows: AccountRows, wallet: WalletBook, passwords: Passwords) -> None:
        self._config = config
        self.rows = rows
        self._wallet = wallet
        self._passwords = passwords

    async def sign_up(self, body: Mapping[str, Any]) -> tuple[Account, str]:
        """A new account with a wallet, and the token of its first sign-in."""
        fields.check_known(body, "name", "password", "nickname", "language", "currency")
        name = _plain(body, "name", 3, 64)
        password = _password(body)
        nickname = _plain(body, "nickname", 1, NICKNAME_MAX)
        language = fields.language(body, default="en")
        currency = fields.one_of(body, "currency", self._config.currencies)
        player = f"p-{secrets.token_hex(8)}"
        try:
            password_hash = await self._passwords.hash(password)
            account = await self.rows.add(name, player, nickname, language, currency, password_hash, now_ms())
        except TakenError as error:
            message = f"this {error.field} is taken; choose another one"
            raise PlatformError("NAME_TAKEN", message, 409, {"field": error.field}) from None
        return account, await self._begin(account)

    async def sign_in(self, body: Mapping[str, Any]) -> tuple[Account, str]:
        """The account, and the token of the sign-in."""
        fields.check_known(body, "name", "password")
        name, password = _plain(body, "name", 1, 64), _password(body, least=1)
        found = await self.rows.by_name(name)
        if not await self._passwords.verify(found[1] if found else None, password) or found is None:
            raise PlatformError("WRONG_PASSWORD", "name or password is wrong", 403)
        account, known = found
        if self._passwords.is_old(known):
            await self.rows.set_password(account.account_id, await self._passwords.hash(password))
        return account, await self._begin(account)

    async def _begin(self, account: Account) -> str:
        # Here as well as at sign-up: a process that was killed between the two files has left no wallet.
        await self._wallet.open_account(account.player, account.currency)
        token, token_sha256 = new_token()
        time_ms = now_ms()
        await self.rows.sign_in(account.account_id, token_sha256, time_ms + self._config.sign_in_ms, time_ms)
        return token

    async def sign_out(self, token: str) -> None:
        """End a sign-in."""
        await self.rows.sign_out(hash_of(token))

    async def of_token(self, token: str, *, even_excluded: bool = False) -> Account:
        """Whose cookie it is. PlatformError: nobody's, or a player's who is excluded."""
        return await self.of_hash(hash_of(token) if token else b"", even_excluded=even_excluded)

    async def of_hash(self, token_sha256: bytes, *, even_excluded: bool) -> Account:
        """As `of_token`, of a token's hash."""
        account = await self.rows.by_sign_in(token_sha256, now_ms())
        if account is None:
            raise PlatformError("SIGNED_OUT", "nobody is signed in; sign in first", 401)
        if not even_excluded:
            verify_not_excluded(account)
        return account

    async def set_settings(self, account: Account, body: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the whole settings."""
        fields.check_known(body, "settings")
        settings = body.get("settings")
        if not isinstance(settings, dict):
            raise invalid("settings", "settings must be an object")
        written = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
        size = len(written.encode())
        if size > SETTINGS_BYTES_MAX:
            raise invalid("settings", f"the settings have {size} bytes", limit=SETTINGS_BYTES_MAX, value=size)
        language = fields.language(settings, default=account.language)
        await self.rows.set_settings(account.account_id, written, language)
        return settings


def verify_not_excluded(account: Account) -> None:
    """PlatformError if the player is excluded."""
    if account.excluded_until_ms > now_ms():
        raise PlatformError(
            "EXCLUDED",
            "you have excluded yourself from play",
            403,
            {"excluded_until": rfc3339(account.excluded_until_ms)},
        )


def _plain(body: Mapping[str, Any], name: str, least: int, most: int) -> str:
    """A name in plain letters (Unicode's NFKC): another form of them is no other name."""
    found = fields.text(body, name, least, most)
    return fields.text({name: unicodedata.normalize("NFKC", found)}, name, least, most)


def _password(body: Mapping[str, Any], least: int = PASSWORD_MIN) -> str:
    """The password as it was typed; the error never repeats it."""
    found = body.get("password")
    if not isinstance(found, str) or not least <= len(found) <= PASSWORD_MAX:
        raise invalid("password", f"the password must have {least} to {PASSWORD_MAX} characters", limit=PASSWORD_MAX)
    return found
