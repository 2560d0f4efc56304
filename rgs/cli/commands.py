"""The list of the commands of `rgs`: what `rgs --help` says of each, and where in `rgs.cli` it stands.

It imports none of them: a command is imported when it is called, so that each waits for what it needs alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, NoReturn


class NotUnderstoodError(Exception):
    """A command line that is not understood, or that somebody has broken off. `status` is the exit status."""

    def __init__(self, text: str, *, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


class PlainParser(argparse.ArgumentParser):
    """The options of a command that is read without typer. Raises NotUnderstoodError instead of ending the process."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, add_help=False)
        self.add_argument("--help", action="store_true", help="Show this message and exit.")

    def error(self, message: str) -> NoReturn:
        raise NotUnderstoodError(f"{message} (see `{self.prog} --help`)")


SETTING_UP: Final = "Setting up"
RUNNING: Final = "Running"
PROVING: Final = "Proving"


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, its panel in the help, its place (`module:attribute` in `rgs.cli`) and its help.

    The attribute is an application of typer, or the function of a command without subcommands; `own`: a function of
    arguments and manifest that reads the arguments itself.
    """

    name: str
    panel: str
    place: str
    text: str
    own: bool = False


COMMANDS: Final = (
    Command(
        "init",
        SETTING_UP,
        "init:command",
        "Make the home of a node, complete for development, or with --production. An existing home is not changed.",
    ),
    Command(
        "migrate",
        SETTING_UP,
        "migrate:command",
        "Bring the store to the schema of this version, beside running nodes where it can be. Keep a backup.",
    ),
    Command(
        "erase-player",
        SETTING_UP,
        "erase:command",
        "Erase who a player was: private blocks, salts, pseudonym. All signed statements still verify.",
    ),
    Command(
        "recover",
        SETTING_UP,
        "recover:command",
        "Bring a restored store up to its log: import what it lacks, pause what is open, sign a new store epoch.",
    ),
    Command("party", SETTING_UP, "party:app", "The allow-list: client certificates with their parties and roles."),
    Command("keys", SETTING_UP, "keys:app", "Root and node keys, and the bundle that auditors get."),
    Command(
        "serve",
        RUNNING,
        "serve:command",
        "Serve until SIGTERM or SIGINT. The first start makes the default home, for development.",
        own=True,
    ),
    Command(
        "generator",
        RUNNING,
        "generator:command",
        "Serve the generator as a process of its own, behind a local socket.",
        own=True,
    ),
    Command("backup", RUNNING, "backup:app", "Copy the store, and prove that a copy can be restored."),
    Command(
        "archive",
        RUNNING,
        "archive:command",
        "Move ended rounds out of the store into files that `certify` reads and the server still finds.",
    ),
    Command("doctor", RUNNING, "doctor:app", "Check a home before it serves, and say what to do."),
    Command(
        "demo",
        RUNNING,
        "demo:app",
        "Play between misbehaving peers; replay, reconcile and audit it; show what is proved.",
    ),
    Command(
        "sandbox",
        RUNNING,
        "sandbox:app",
        "Bring up a server, a wallet and two operators, for whoever writes a client.",
    ),
    Command("play", RUNNING, "play:app", "Play by hand against a running server, and see every round verified."),
    Command("call", RUNNING, "call:app", "Call one method of the server, JSON in and out."),
    Command("support", RUNNING, "support:app", "Look up players, sessions and rounds; explain a round in words."),
    Command(
        "admin",
        RUNNING,
        "admin:app",
        "Switches, guards, malfunctions and voids by two admins, with a dry run.",
    ),
    Command("tables", RUNNING, "tables:app", "Configure, open, pause and watch over tables that players share."),
    Command(
        "simulate",
        RUNNING,
        "simulate:app",
        "Run a wallet or a regulator's system that makes the faults of a plan.",
    ),
    Command("witness", RUNNING, "witness:app", "Watch transparency logs and cosign their checkpoints."),
    Command("conformance", RUNNING, "conformance:app", "Check a wallet or a regulator's gateway against the contract."),
    Command(
        "export",
        PROVING,
        "export:command",
        "Write the signed statements, one a line, for an auditor's replay. Works while the server runs.",
    ),
    Command(
        "export-wallet",
        PROVING,
        "export_books:wallet_command",
        "Write the embedded wallet's transactions as CSV, for a reconciliation.",
    ),
    Command(
        "export-regulator",
        PROVING,
        "export_books:regulator_command",
        "Write the test regulator's journal as JSON lines, with daily totals, for a reconciliation.",
    ),
    Command(
        "dispute-export",
        PROVING,
        "dispute:command",
        "Write a zip about one round, for a complaint: statements, proofs, keys, rules, and a page to read.",
    ),
    Command(
        "receipt",
        PROVING,
        "receipt:command",
        "Write the receipt of a round: the signed statement, and the proof that it is in the log.",
    ),
    Command(
        "reconcile",
        PROVING,
        "reconcile:app",
        "Compare the record with the operator's wallet and the regulator's book.",
    ),
    Command("log", PROVING, "log:app", "Show and serve the transparency log."),
)
