"""HTML that is made on the server: every value is escaped, unless it is HTML already."""

from __future__ import annotations

import html
from typing import Final

from aiohttp import web

STYLE: Final = """
:root {
  color-scheme: light dark;
  --panel: light-dark(#ffffff, #1a2220);
  --line: light-dark(#d3d7d2, #34403b);
  --edge: light-dark(#75817c, #7d8a84);
  --accent: light-dark(#0b6350, #46c3a3);
  --on-accent: light-dark(#ffffff, #06201a);
  font: 16px/1.5 "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-size-adjust: ch-width 0.556; /* as wide as Arial in every font */
  color: light-dark(#18211e, #eef2ef);
  background: light-dark(#f1efe8, #101514);
}
body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
nav { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: center; }
nav a { display: inline-block; padding: 0.4rem 0; }
a { color: light-dark(#0a5a49, #63d3b5); }
pre, code { overflow-wrap: anywhere; }
main { background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; padding: 0.5rem 1rem 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.amount { text-align: right; font-variant-numeric: tabular-nums; }
form.inline { display: inline; }
label { display: block; margin: 0.5rem 0; }
input, select, button {
  font: inherit; color: inherit; background: var(--panel);
  border: 1px solid var(--edge); border-radius: 0.5rem; padding: 0.35rem 0.7rem; min-height: 2.5rem; max-width: 100%;
}
button { font-weight: 600; color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
label + button { margin-top: 0.5rem; }
pre { overflow-x: auto; background: #8881; padding: 0.75rem; font-size: 0.8rem; }
.note { border-left: 4px solid #c80; padding: 0.25rem 0.75rem; }
.card { display: inline-block; min-width: 2.2rem; margin-right: 0.35rem; padding: 0.35rem 0.2rem; font-size: 1.25rem;
  text-align: center; border: 1px solid #6b7471; border-radius: 0.35rem; background: #fdfdfb; color: #16202a; }
.card.h, .card.d { color: #b3121d; }
.verdict { border-left: 4px solid #c80; padding: 0.25rem 0.75rem; font-weight: 700; }
.verdict.passed { border-color: #0a6b2c; }
.verdict.failed { border-color: #b3121d; }
dd { margin: 0 0 0.25rem 1rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: 0.5rem; }
  main { padding: 0.25rem 0.6rem 0.75rem; }
  table { font-size: 0.8125rem; }
  th, td { padding-right: 0.35rem; overflow-wrap: anywhere; }
}
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
    heads = join([render('<th scope="col">{one}</th>', one=one) for one in head])
    lines = join(
        [render("<tr>{cells}</tr>", cells=join([render("<td>{one}</td>", one=one) for one in row])) for row in rows]
    )
    return render("<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>", heads=heads, lines=lines)


def named_rows(rows: list[list[object]]) -> Html:
    """A table of names and what they stand for."""
    line = '<tr><th scope="row">{name}</th><td>{value}</td></tr>'
    lines = [render(line, name=name, value=value) for name, value in rows]
    return render("<table><tbody>{lines}</tbody></table>", lines=join(lines))


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
