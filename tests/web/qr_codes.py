"""QR codes for a browser to read: as a picture, and in front of a camera."""

from __future__ import annotations

from typing import Any, Final

from tests.web.page_browser import DIST, until

ENCODER: Final = DIST.parent / "node_modules/qr/index.js"
CAMERA: Final = """([pixels, side]) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side * 8;
  const context = canvas.getContext("2d");
  const draw = () => {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = "#000";
    pixels.forEach((row, y) => row.forEach((dark, x) => { if (dark) context.fillRect(x * 8, y * 8, 8, 8); }));
  };
  draw();
  setInterval(draw, 50);
  navigator.mediaDevices.getUserMedia = async () => canvas.captureStream(20);
}"""
"""A camera that sees these rows of dark and light."""


def encoder(browser: Any) -> Any:
    """A page that makes QR codes."""
    page = browser.new_context().new_page()
    page.add_script_tag(type="module", content=f"{ENCODER.read_text('utf-8')}\nglobalThis.encodeQR = encodeQR;")
    until(page, "() => globalThis.encodeQR !== undefined")
    return page


def encode(page: Any, text: str, kind: str) -> Any:
    """A QR code: `gif` as bytes, `raw` as rows of dark and light."""
    options = {"border": 4, **({"scale": 5} if kind == "gif" else {})}
    found = page.evaluate(
        "([text, kind, options]) => { const found = encodeQR(text, kind, options); "
        "return kind === 'gif' ? [...found] : found; }",
        [text, kind, options],
    )
    return bytes(found) if kind == "gif" else found
