"""`rgs dispute-export ROUND_ID`: writes a zip about a round, for a complaint. `certify dispute` verifies and shows it.

The zip holds the session's statements with their private blocks (`--no-private` leaves them out), the keys, the opening
and the final of the seat with their log proofs, the ruleset, and a page that is rendered from exactly these files. Of a
session at a table it also holds what all seats of its rounds share, and nothing of other sessions. The round must have
ended. If it has several seats, `--session` names one.
"""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rgs.cli.export import export_session
from rgs.cli.options import HOME, HomeOption
from rgs.cli.receipt import statement_of
from rgs.core.errors import FormatError, NotFoundError
from rgs.core.ids import check_ulid
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import parse_envelope, parse_statement
from rgs.node.config import Config, open_home
from rgs.node.files import SECRET_MODE, write_new
from rgs.node.keyring import load_bundle
from rgs.node.parts import part
from rgs.node.stores import reading
from rgs.service.table_statements import shared_statements
from rgs.store.interface import StatementRow
from rgs.tlog.published import make_proof

_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a zip, so that the same files make the same bytes."""
README: Final = """This file shows one round of play, with everything that is needed to check it.

page.html       the round as a page, in English, Italian and German
session.jsonl   every signed statement of the session
keys.json       the keys of the server's operator; get the root fingerprint from the regulator or an auditor instead
*.json          the statements of the round, as they were signed
*.tlog-proof    the proofs that these statements are in the transparency log

    certify dispute FILE.zip --root FINGERPRINT --policy POLICY --html mine.html

This command makes the page again from the signed statements alone. docs/formats.md and docs/verify.md explain each
byte.
"""


def command(
    round_id: Annotated[str, typer.Argument(help="The round.")],
    output: Annotated[Path, typer.Option(help="The new zip.", dir_okay=False)],
    home: HomeOption = HOME,
    log: Annotated[Path | None, typer.Option("--log", help="A copy of the log, instead of the home's log.")] = None,
    session: Annotated[str, typer.Option(help="The session of the seat, if the round has several seats.")] = "",
    private: Annotated[bool, typer.Option(help="Include the private blocks that still exist.")] = True,
) -> int:
    """Write a zip about one round, for a complaint: statements, proofs, keys, rules, and a page to read."""
    config = open_home(home)
    check_ulid(round_id, "round_id")
    seats = {name: asyncio.run(statement_of(config, round_id, session, name)) for name in ("opening", "final")}
    held = io.BytesIO()
    asyncio.run(export_session(config, seats["final"][0].session_id, held, private=private))
    bundle = load_bundle(config)
    contents = {
        "README.txt": README.encode("ascii"),
        "keys.json": bundle,
        "ruleset.json": asyncio.run(_ruleset(config, seats["opening"][0])),
        "session.jsonl": held.getvalue(),
    }
    for name, (row, start) in seats.items():
        contents[f"{name}.json"] = row.envelope
        try:
            contents[f"{name}.tlog-proof"] = make_proof(log or config.translog, row.hash, bundle=bundle, start=start)
        except NotFoundError:
            print(f"{name}: not in the log yet")
    contents |= page_of(contents)
    write_new(output.absolute(), zip_of(contents), SECRET_MODE)
    print(output)
    return 0


def page_of(contents: dict[str, bytes]) -> dict[str, bytes]:
    """The page, made from these files alone. Without a page if the round cannot be shown: the zip is written anyway."""
    examined = part("certification.dispute", "dispute").examine(contents, None, None)  # a server does not load it
    try:
        return {"page.html": part("certification.dispute_page", "dispute").render_dispute(examined).encode()}
    except FormatError as error:
        print(f"without a page: {error.message}")
        return {}


def zip_of(contents: dict[str, bytes]) -> bytes:
    """A zip of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in sorted(contents):
            zipped.writestr(zipfile.ZipInfo(name, _ZIP_TIME), contents[name], zipfile.ZIP_DEFLATED)
    return made.getvalue()


async def _ruleset(config: Config, opening: StatementRow) -> bytes:
    """The ruleset of the deal, in its canonical form. NotFoundError if this version does not ship it."""
    async with reading(config.store, config.archive) as reads:
        round_ = await reads.table_round(opening.round_id)
        fixed = (await shared_statements(reads, round_))[0] if round_ is not None else None
    named = (_body(opening)["deal"] if fixed is None else _body(fixed))["ruleset"]
    ruleset = load_ruleset(named["id"])
    if ruleset.sha256 != named["sha256"]:
        raise NotFoundError(f"this version does not ship ruleset {named['id']} {named['version']}", kind="ruleset")
    return ruleset.canonical


def _body(row: StatementRow) -> dict[str, Any]:
    return parse_statement(parse_envelope(row.envelope))[1]
