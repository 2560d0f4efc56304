"""`rgs party add | list | remove | links`: the allow-list of client certificates (ARCHITECTURE section 3, roles), and
the pages of an operator that its players' pages link to.

It works while a server runs: the server notices the change. `add` fails if the certificate's one URI does not name the
same role and party, if an operator has no jurisdiction or one that does not allow the development CA of this home, and
if the certificate was removed before. `remove` fails for the last certificate of an admin.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Final

import typer
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from rgs.cli.options import HOME, HomeOption, entropy, new_app, note
from rgs.core.errors import InvalidFieldError
from rgs.core.ids import check_name
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.links import OperatorLinks, format_links, parse_links
from rgs.core.times import format_time
from rgs.node import pki
from rgs.node.clock import now_ms
from rgs.node.config import Config, open_home
from rgs.node.files import check_fingerprint, read_whole
from rgs.node.home import allowed_row, issue_client, write_issued
from rgs.node.stores import allow_list, reading
from rgs.service.admin.certificates import ends_soon
from rgs.service.callers import Role
from rgs.store.allowed import links_key
from rgs.store.interface import Parties, PartyRow

app = new_app(help="The allow-list: client certificates with their parties and roles.")

_NAME_CHARACTERS: Final = 12
"""Characters of the fingerprint in the file name of a party's second certificate."""


@app.command()
def add(
    role: Annotated[Role, typer.Option(help="What the party is.")],
    party: Annotated[str, typer.Option(help="Its name: lowercase letters, digits, '.', '_', '-'.")],
    jurisdiction: Annotated[str, typer.Option(help=f"For an operator only: {', '.join(SHIPPED_JURISDICTIONS)}.")] = "",
    cert: Annotated[
        Path | None, typer.Option(help="The party's own certificate, PEM.", exists=True, dir_okay=False)
    ] = None,
    issue: Annotated[bool, typer.Option("--issue", help="Issue one from the development CA.")] = False,
    home: HomeOption = HOME,
    operator: Annotated[
        str, typer.Option(help="For support only: whose players it may look up; default: those of all operators.")
    ] = "",
) -> int:
    """Allow a certificate: the party's own (--cert), or a new one from the development CA (--issue)."""
    config = open_home(home)
    check_name(party, "party")
    if (cert is not None) == issue:
        raise InvalidFieldError("give either --cert or --issue", field="cert")
    if operator:
        check_name(operator, "operator")
    return asyncio.run(_add(config, role, party, jurisdiction, operator, cert))


async def _add(config: Config, role: Role, party: str, jurisdiction: str, operator: str, cert: Path | None) -> int:
    ca_pem = read_whole(config.ca, "authority")
    _verify_jurisdiction(role, jurisdiction, ca_pem)
    time_ms = now_ms()
    async with _allow_list(config) as parties:
        if cert is not None:
            certificate = pki.load_certificate(read_whole(cert, "certificate"))
            pki.verify_client_certificate(certificate, role, party, time_ms)
            await parties.add(allowed_row(certificate, role, party, jurisdiction, time_ms, operator))
            if not _is_issued_by(certificate, ca_pem):
                note(f"note: no CA of {config.ca} signed it; TLS accepts it only with a chain that ends at one of them")
        else:
            issued = issue_client(config, role, party, entropy().read, time_ms)
            certificate = issued.certificate
            stem = _stem(config, party, pki.fingerprint_of(certificate))
            write_issued(stem, issued)
            try:
                await parties.add(allowed_row(certificate, role, party, jurisdiction, time_ms, operator))
            except BaseException:
                for suffix in (".pem", ".key"):
                    stem.with_name(stem.name + suffix).unlink()
                raise
            print(f"wrote {stem}.pem and {stem}.key (give them to {party}, then delete the key here)")
    if ends_soon(pki.last_ms_of(certificate), time_ms):
        note(
            f"warning: the certificate ends at {format_time(pki.last_ms_of(certificate))}: add the next one before that"
        )
    terms = f" in {jurisdiction}" * bool(jurisdiction) + f" of {operator}" * bool(operator)
    print(f"allowed {pki.fingerprint_of(certificate)} as {role} {party}{terms}")
    return 0


@app.command(name="list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Include removed certificates.")] = False,
    home: HomeOption = HOME,
) -> int:
    """List the allowed certificates, one a line, with columns separated by tabs."""
    for row in asyncio.run(_listed(open_home(home), everything=everything)):
        state = "allowed" if row.removed_ms is None else f"removed {format_time(row.removed_ms)}"
        ends = "end not known" if row.last_ms is None else f"ends {format_time(row.last_ms)}"
        added = format_time(row.added_ms)
        print(
            "\t".join(
                (row.fingerprint, row.role, row.party, row.jurisdiction or row.operator or "-", added, state, ends)
            )
        )
    return 0


@app.command()
def remove(
    fingerprint: Annotated[str, typer.Argument(help="Hex SHA-256 of the certificate, as `rgs party list` shows it.")],
    home: HomeOption = HOME,
) -> int:
    """Remove a certificate for good, also on open connections. The last certificate of an admin stays."""
    plain = check_fingerprint(fingerprint)
    asyncio.run(_remove(open_home(home), plain))
    print(f"removed {plain}")
    return 0


@app.command()
def links(
    party: Annotated[str, typer.Argument(help="The operator.")],
    cashier: Annotated[str | None, typer.Option(help="Deposits and withdrawals: an https URL; '' for none.")] = None,
    responsible_play: Annotated[str | None, typer.Option(help="Responsible play: an https URL; '' for none.")] = None,
    help_page: Annotated[str | None, typer.Option(help="Help: an https URL; '' for none.")] = None,
    home: HomeOption = HOME,
) -> int:
    """Set the pages of an operator that its players' pages link to, or show them. What is not given stays."""
    given = {"cashier": cashier, "responsible_play": responsible_play, "help": help_page}
    changed = {name: link for name, link in given.items() if link is not None}
    for name, link in asdict(asyncio.run(_links(open_home(home), party, changed))).items():
        print(f"{name}\t{link or '-'}")
    return 0


async def _links(config: Config, party: str, changed: Mapping[str, str]) -> OperatorLinks:
    check_name(party, "party")
    async with reading(config.store) as store:
        now = replace(parse_links(await store.meta(links_key(party))), **changed)
    if changed:
        now.verify()
        async with allow_list(config.store) as parties:
            await parties.set_links(party, format_links(now))
    return now


async def _listed(config: Config, *, everything: bool) -> list[PartyRow]:
    async with _allow_list(config) as parties:
        return await parties.all() if everything else await parties.allowed()


async def _remove(config: Config, fingerprint: str) -> None:
    async with _allow_list(config) as parties:
        await parties.remove(fingerprint, now_ms())


@asynccontextmanager
async def _allow_list(config: Config) -> AsyncIterator[Parties]:
    """The store's allow-list. StoreRefusedError before any change if the store has another schema."""
    async with reading(config.store):
        pass
    async with allow_list(config.store) as parties:
        yield parties


def _verify_jurisdiction(role: Role, jurisdiction: str, ca_pem: bytes) -> None:
    if role is Role.OPERATOR:
        if not jurisdiction:
            raise InvalidFieldError(
                "an operator needs --jurisdiction", field="jurisdiction", limit=", ".join(SHIPPED_JURISDICTIONS)
            )
        pki.verify_ca_allowed(ca_pem, [load_jurisdiction(jurisdiction)])
    elif jurisdiction:
        raise InvalidFieldError(
            f"only operators have a jurisdiction, role {role} has none",
            field="jurisdiction",
            limit="none",
            value=jurisdiction,
        )


def _stem(config: Config, party: str, fingerprint: str) -> Path:
    folder = config.tls / "clients"
    taken = any((folder / f"{party}{suffix}").exists() for suffix in (".pem", ".key"))
    return folder / (f"{party}-{fingerprint[:_NAME_CHARACTERS]}" if taken else party)


def _is_issued_by(certificate: x509.Certificate, ca_pem: bytes) -> bool:
    for authority in pki.load_certificates(ca_pem):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
        return True
    return False
