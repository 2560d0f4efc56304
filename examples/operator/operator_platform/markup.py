"""HTML that is made on the server: every value is escaped, unless it is HTML already."""

from __future__ import annotations

import html
from typing import Final

from aiohttp import web

STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
nav a { margin-right: 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8886; vertical-align: top; }
td.amount { text-align: right; font-variant-numeric: tabular-nums; }
form.inline { display: inline; }
label { display: block; margin: 0.5rem 0; }
input, select, button { font: inherit; padding: 0.25rem 0.5rem; }
pre { overflow-x: auto; background: #8881; padding: 0.75rem; font-size: 0.8rem; }
.note { border-left: 4px solid #c80; padding: 0.25rem 0.75rem; }
.card { display: inline-block; min-width: 2.2rem; margin-right: 0.35rem; padding: 0.35rem 0.2rem; font-size: 1.25rem;
  text-align: center; border: 1px solid #6b7471; border-radius: 0.35rem; background: #fdfdfb; color: #16202a; }
.card.h, .card.d { color: #b3121d; }
.verdict { border-left: 4px solid #c80; padding: 0.25rem 0.75rem; font-weight: 700; }
.verdict.passed { border-color: #0a6b2c; }
.verdict.failed { border-color: #b3121d; }
dd { margin: 0 0 0.25rem 1rem; overflow-wrap: anywhere; }
"""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def render(template: str, **values: object) -> Html:
    """The template with its values, which are escaped unless they are Html."""
    escaped = {name: one if isinstance(one, Html) else html.escape(str(one)) for name, one in values.items()}
    return Html(template.format(**escaped))


def join(parts: list[Html]) -> Html:
    """Parts one after the other."""
    return Html("".join(parts))


def table(head: list[str], rows: list[list[object]]) -> Html:
    """A table; cells are escaped unless they are Html."""
    if not rows:
        return Html("<p>None.</p>")
    heads = join([render("<th>{one}</th>", one=one) for one in head])
    lines = join(
        [render("<tr>{cells}</tr>", cells=join([render("<td>{one}</td>", one=one) for one in row])) for row in rows]
    )
    return render("<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>", heads=heads, lines=lines)


def page(title: str, content: Html, nav: str = "", language: str = "en", script: str = "") -> web.Response:
    """A whole page. `script` is the path of a module that it loads."""
    text = render(
        '<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>{title}</title>'
        '<link rel="stylesheet" href="/pages.css">{script}</head><body>{nav}<main><h1>{title}</h1>'
        "{content}</main></body></html>",
        language=language,
        script=render('<script type="module" src="{path}"></script>', path=script) if script else Html(""),
        title=title,
        nav=Html(nav),
        content=content,
    )
    return web.Response(text=str(text), content_type="text/html")


def major(amount_minor: int, exponent: int, currency: str) -> str:
    """An amount in major units: "12.50 EUR"."""
    sign, amount = "-" if amount_minor < 0 else "", abs(amount_minor)
    if not exponent:
        return f"{sign}{amount} {currency}"
    return f"{sign}{amount // 10**exponent}.{amount % 10**exponent:0{exponent}d} {currency}"
