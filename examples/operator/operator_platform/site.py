"""The built page: its files in memory, with the headers that each of them needs.

`verify.html` is one file with its scripts inside; they are allowed by their hashes. Everything else loads from files.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

ABSENT: Final = (
    "The page is not built. Run `make web`, or `npm ci && npm run build` in examples/operator/page, and reload this."
)
POLICIES: Final = "lit-html page"
"""Names of Trusted Types policies that the page may make."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    f"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types {POLICIES}"
)
_INSIDE: Final = re.compile(rb"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)
_COMPRESSED: Final = (".html", ".js", ".css", ".svg", ".json", ".webmanifest")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    content: bytes
    compressed: bytes | None
    content_type: str
    policy: str
    tag: str
    is_immutable: bool


class Site:
    """The files below a folder. They are read again when the page was built again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built_ns = 0
        self._assets: dict[str, Asset] = {}

    def find(self, path: str) -> Asset | None:
        """The file of a path of a URL."""
        self._refresh()
        if path in ("/", "/play"):
            path = "/index.html"
        return self._assets.get(path)

    def _refresh(self) -> None:
        index = self._folder / "index.html"
        built_ns = index.stat().st_mtime_ns if index.is_file() else 0
        if built_ns == self._built_ns:
            return
        files = (
            [path for path in self._folder.rglob("*") if path.is_file() and path.suffix != ".map"] if built_ns else []
        )
        self._assets = {f"/{path.relative_to(self._folder).as_posix()}": _asset(path) for path in files}
        self._built_ns = built_ns

    def serve(self, request: web.Request) -> web.Response:
        """The file that is asked for."""
        asset = self.find(request.path)
        if asset is None:
            is_page = request.path in ("/", "/play")
            return web.Response(
                status=503 if is_page else 404, text=f"{ABSENT if is_page else 'There is no such page.'}\n"
            )
        headers = {
            "Content-Security-Policy": asset.policy,
            "ETag": asset.tag,
            "Cache-Control": "public, max-age=31536000, immutable" if asset.is_immutable else "no-cache",
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("If-None-Match") == asset.tag:
            return web.Response(status=304, headers=headers)
        body = asset.content
        if asset.compressed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = asset.compressed
            headers["Content-Encoding"] = "gzip"
        is_text = asset.content_type.startswith("text/")
        charset = "utf-8" if is_text else None
        return web.Response(body=body, headers=headers, content_type=asset.content_type, charset=charset)


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    compressed = gzip.compress(content, 9, mtime=0) if path.suffix in _COMPRESSED else None
    kind = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0]
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    policy = _policy_of(content) if path.suffix == ".html" else POLICY
    is_immutable = "assets" in path.parts and path.suffix != ".html"
    return Asset(content, compressed, kind or "application/octet-stream", policy, tag, is_immutable)


def _policy_of(content: bytes) -> str:
    """The policy of an HTML file: what is written inside it is allowed by its hash."""
    policy = POLICY
    for name in (b"script", b"style"):
        inside = [found[2] for found in _INSIDE.finditer(content) if found[1] == name and found[2].strip()]
        hashes = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in inside)
        policy = policy.replace(f"{name.decode()}-src 'self'", f"{name.decode()}-src 'self'{hashes}")
    return policy
