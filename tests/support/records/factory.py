"""Signed statements without a server: rounds are played by rgs.core.games and signed by rgs.core.statements.

Everything follows from a seed: keys, salts, ids and transcripts. An honest factory makes exports that must pass; `lie`
is called with every body before it is signed, so that a lying one keeps its chains and signatures in order and is
wrong in one place only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rgs.core import games
from rgs.core.cards import format_cards
from rgs.core.games.types import Action, Phase, Seat, SeatStakes
from rgs.core.ids import format_game_code, format_ulid
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rounds import SERVER_PARTY, outcome_object, rules_object, settlement_objects
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import (
    Ed25519Signer,
    ExportLine,
    commitment_of,
    first_actions_hash,
    format_canonical,
    format_line,
    kind_of,
    leaf_hash,
    next_actions_hash,
    private_hash,
    seal_envelope,
)
from rgs.core.statements.lines import format_key_bundle
from rgs.core.times import format_time
from rgs.core.tlog.merkle import inclusion_path, root_of
from rgs.core.tlog.merkle import leaf_hash as merkle_leaf
from rng.shuffle import PROCEDURE, transcript_to_deck
from tests.support.records.parts import Round, SessionRecord, Worker
from tests.support.records.parts import join as join  # noqa: PLC0414 - offered here too
from tests.support.seeded import Bytes

Body = dict[str, Any]
Lie = Callable[[str, int, Body], None]
"""Called with kind (`<kind> block`: a private block), its count so far from 1, and the body, which it may change."""

START_MS = 1_795_000_000_000
ADMINS = ("admin-1", "admin-2")
MANIFEST = hashlib.sha256(b"manifest").hexdigest()


class RecordFactory:
    """Keys, instances and sessions of one server.

    `lines` are the export in the order of signing, each without its line feed.
    """

    def __init__(
        self,
        seed: str = "house",
        *,
        lie: Lie | None = None,
        bend: Callable[[bytes], bytes] = bytes,
        sealing: Callable[[str, bytes, Ed25519Signer], bytes] = seal_envelope,
        development: bool = False,
        law_version: int | None = 1,
    ) -> None:
        """`law_version` is that of the jurisdictions, None the newest: the scenarios (tests/vectors) are of version 1.
        `bend` makes of a transcript the bytes that are committed to and revealed; an honest factory leaves it.

        `sealing` makes the envelope of payload type, payload and signer.
        """
        self.random = Bytes(seed)
        self._bend = bend
        self._sealing = sealing
        self.lines: list[bytes] = []
        self.hashes: list[str] = []
        self.clock_ms = START_MS
        self._lie = lie
        self._count: Counter[str] = Counter()
        self._development = development
        self.law_version = law_version
        self.root = Ed25519Signer.from_seed(self.random.take(32))
        self.nodes: dict[str, Ed25519Signer] = {}
        self.bundle: list[bytes] = []
        self._ids = 0
        self._tables: dict[str, str] = {}
        self._admins: set[str] = set()
        self.store_epoch = self.ulid()
        self.key_statement(self.root, "root_key", {"public_key": self.root.public_key.hex()})

    # --- signing ---

    def ulid(self) -> str:
        return format_ulid(self.clock_ms, self.random.take(10))

    def id16(self, letter: str) -> str:
        """An id as a regulator gives it."""
        self._ids += 1
        return f"{letter}1795{self._ids:06d}AAAAA"

    def now(self, passed_ms: int = 700) -> str:
        self.clock_ms += passed_ms
        return format_time(self.clock_ms)

    def seal(self, signer: Ed25519Signer, kind: str, body: Body) -> bytes:
        self._count[kind] += 1
        body["kind"] = kind
        body.setdefault("time", self.now())
        if self._lie is not None:
            self._lie(kind, self._count[kind], body)
        return self._sealing(kind_of(kind, body).payload_type, format_canonical(body), signer)

    def key_statement(self, signer: Ed25519Signer, kind: str, body: Body) -> bytes:
        envelope = self.seal(signer, kind, body)
        self.bundle.append(envelope)
        return envelope

    def line(self, envelope: bytes, private: Body | None = None) -> str:
        self.lines.append(format_line(ExportLine(envelope, private)))
        self.hashes.append(leaf_hash(envelope).hex())
        return self.hashes[-1]

    def node(self, name: str) -> Ed25519Signer:
        if name not in self.nodes:
            signer = self.nodes[name] = Ed25519Signer.from_seed(self.random.take(32))
            body = {"development": self._development, "node": name, "public_key": signer.public_key.hex()}
            self.key_statement(self.root, "node_key", body)
        return self.nodes[name]

    def numbered(self, worker: Worker, kind: str, body: Body, private: Body | None = None) -> str:
        worker.statement_no += 1
        body |= {"instance": worker.name, "statement_no": str(worker.statement_no)}
        signer = self.nodes[worker.node] if kind == "instance_start" else worker.signer
        return self.line(self.seal(signer, kind, body), private)

    def link(self, worker: Worker, player: SessionRecord, kind: str, body: Body, block: Body | None = None) -> str:
        player.link_no += 1
        body |= {"link_no": str(player.link_no), "previous": player.head, "session_id": player.session_id}
        private: Body | None = None
        if block is not None:
            self._count[f"{kind} block"] += 1
            if self._lie is not None:
                self._lie(f"{kind} block", self._count[f"{kind} block"], block)
            private = {"block": block, "salt": self.random.take(32).hex()}
            body["private"] = private_hash(bytes.fromhex(private["salt"]), block).hex()
        player.head = self.numbered(worker, kind, body, private)
        return player.head

    # --- instances ---

    def start(self, name: str, node: str = "node-1", boot_no: int = 1, *, worker: int = 0, **more: Any) -> Worker:
        self.node(node)
        made = Worker(name, node, Ed25519Signer.from_seed(self.random.take(32)))
        body = {
            "boot_no": str(boot_no),
            "draws_in_flight_max": "8",
            "manifest": MANIFEST,
            "node": node,
            "public_key": made.signer.public_key.hex(),
            "rng_version": "1.0.0",
            "software_version": "0.1.0",
            "store_epoch": self.store_epoch,
            "worker": str(worker),
            **more,
        }
        self.numbered(made, "instance_start", body)
        return made

    def end(self, worker: Worker) -> str:
        return self.numbered(worker, "instance_end", {"last_draw_no": str(worker.draw_no), "reason": "SHUTDOWN"})

    def lose(self, by: Worker, lost: Worker) -> str:
        return self.numbered(by, "instance_lost", {"lost": self.boot(lost), "reason": "LEASE_EXPIRED"})

    @staticmethod
    def boot(worker: Worker) -> Body:
        return {
            "instance": worker.name,
            "last_draw_no": str(worker.draw_no),
            "last_statement_no": str(worker.statement_no),
        }

    def event(self, worker: Worker, code: str = "MALFUNCTION", **more: str) -> str:
        return self.numbered(worker, "event", {"code": code, **more})

    def draw(self, worker: Worker) -> tuple[int, int, bytes]:
        """Draw number, reseed counter and transcript of the worker's next draw."""
        worker.draw_no += 1
        worker.reseed_counter += 1
        return worker.draw_no, worker.reseed_counter, self.random.transcript()

    def discard(self, worker: Worker, draw: tuple[int, int, bytes] | None = None) -> str:
        draw_no, reseed_counter, transcript = draw or self.draw(worker)
        body = {
            "draw_no": str(draw_no),
            "reason": "LOST_RACE",
            "reseed_counter": str(reseed_counter),
            "transcript": transcript.hex(),
        }
        return self.numbered(worker, "discarded_draw", body)

    def scope(self, instances: Sequence[Body] = (), sessions: Sequence[Body] = (), node: str = "node-1") -> bytes:
        """The line of an export_scope; where it stands is the caller's to say."""
        body = {"instances": list(instances), "reason": "REQUEST", "sessions": list(sessions)}
        return format_line(ExportLine(self.seal(self.nodes[node], "export_scope", body), None))

    # --- sessions ---

    def open(
        self,
        worker: Worker,
        ruleset: str = "uth-solo",
        *,
        jurisdiction: str = "demo",
        table: str = "",
        player: SessionRecord | None = None,
        seamless: bool = False,
        demo: bool = False,
        bet_limits: Sequence[Body] = (),
    ) -> SessionRecord:
        """A new session, or (nobody honest does that) a session_open in the session of `player`."""
        rules, law = load_ruleset(ruleset), load_jurisdiction(jurisdiction, self.law_version)
        player = player or SessionRecord(self.ulid(), rules, table, self.ulid(), is_demo=demo)
        body = {
            "currency": next(iter(law.currencies)),
            "jurisdiction": rules_object(law),
            "operator": "operator-1",
            "ruleset": rules_object(rules),
            "test_regulator": law.test_regulator_allowed,
            **({"table": table} if table else {}),
        }
        block = {
            "player": "p-1",
            "regulator": "test-regulator" if law.test_regulator_allowed else "regulator",
            "regulator_session_id": self._tables.setdefault(table, self.id16("M")) if table else self.id16("M"),
        }
        block = {"player": "p-1"} if seamless or demo else block
        body |= {"funding": "seamless"} if seamless else {"mode": "demo", "test_regulator": False} if demo else {}
        body |= {"bet_limits": [dict(one) for one in bet_limits]} if bet_limits else {}
        self.link(worker, player, "session_open", body, block)
        return player

    def buy(self, worker: Worker, player: SessionRecord, amount: int) -> str:
        before = player.balance
        player.purchase_no += 1
        player.bought += amount
        body = {
            "amount_minor": str(amount),
            "balance_after_minor": str(player.balance),
            "balance_before_minor": str(before),
            "bought_minor": str(player.bought),
            "participation_id": player.participation_id,
            "purchase_no": str(player.purchase_no),
        }
        if not player.is_demo:
            player.regulator_participation_id = player.regulator_participation_id or self.id16("N")
        return self.link(worker, player, "purchase", body, self._moved(player))

    def _moved(self, player: SessionRecord) -> Body:
        """What stands beside a transfer: whose right it is for, and which transaction of the wallet; or why not."""
        if player.is_demo:
            return {"reason": "PLAY_MONEY"}
        named = player.regulator_participation_id or self.id16("N")
        return {"regulator_participation_id": named, "wallet_transaction_id": self.id16("W")}

    def end_participation(self, worker: Worker, player: SessionRecord) -> str:
        paid_out = player.balance
        body = {
            "bought_minor": str(player.bought),
            "paid_out_minor": str(paid_out),
            "participation_id": player.participation_id,
            "returned_minor": str(player.returned - player.reclaimed),
            "rounds": str(player.round_no),
            "staked_minor": str(player.staked - player.granted),
        }
        player.paid_out = paid_out
        return self.link(worker, player, "participation_end", body, self._moved(player))

    def close(self, worker: Worker, player: SessionRecord) -> str:
        return self.link(worker, player, "session_close", {"reason": "PLAYER", "rounds": str(player.round_no)})

    # --- rounds ---

    def deal(
        self,
        worker: Worker,
        players: Sequence[SessionRecord],
        stakes: Mapping[str, int],
        *,
        draw: tuple[int, int, bytes] | None = None,
        opened: int | None = None,
        passed_ms: int = 5000,
        round_id: str = "",
    ) -> None:
        """One round with a seat for each player, all with these stakes; the first `opened` of the seats are opened."""
        draw_no, reseed_counter, transcript = draw or self.draw(worker)
        ruleset = players[0].ruleset
        start_time = self.now(passed_ms)
        bets = games.check_stakes(ruleset, stakes)
        staked = sum(amount for _, amount in bets)
        objects = [
            {
                "bets": [{"amount_minor": str(amount), "bet": bet} for bet, amount in bets],
                "seat_no": str(number),
                "session_id": player.session_id,
            }
            for number, player in enumerate(players, 1)
        ]
        leaves = [merkle_leaf(format_canonical(one)) for one in objects]
        for player in players:
            player.starts = player.starts + 1 if player.second == start_time[:19] else 1
            player.second = start_time[:19]
        deal: Body = {
            "draw_no": str(draw_no),
            "game_code": format_game_code(self.clock_ms, max(player.starts for player in players)),
            "instance": worker.name,
            "reseed_counter": str(reseed_counter),
            "round_id": round_id or self.ulid(),
            "ruleset": rules_object(ruleset),
            "seats": str(len(players)),
            "seats_root": root_of(leaves).hex(),
            "shuffle": PROCEDURE,
            "start_time": start_time,
            "table": players[0].table,
        }
        salt = self.random.take(32)
        commitment = commitment_of(format_canonical(deal), salt, self._bend(transcript))
        dealt = games.deal(
            ruleset,
            transcript_to_deck(transcript),
            [
                SeatStakes(number, stakes, player.funds or player.balance - staked)
                for number, player in enumerate(players, 1)
            ],
        )
        for index, player in enumerate(players[:opened]):
            before = player.balance
            player.round_no += 1
            player.round = Round(deal["round_id"], transcript, salt, commitment, dealt[index], before)
            body = {
                "balance_after_minor": str(before - staked),
                "balance_before_minor": str(before),
                "commitment": commitment.hex(),
                "deal": dict(deal),
                "path": [node.hex() for node in inclusion_path(leaves, index)],
                "seat": objects[index],
                "round_no": str(player.round_no),
            }
            player.round.opening = self.link(worker, player, "round_opening", body)

    def act(self, player: SessionRecord, actions: Sequence[str], *, by: str = "player") -> None:
        """Decisions of the open round, in order."""
        round_ = player.round
        assert round_ is not None
        for action in actions:
            after = games.apply(round_.seat, Action(action))
            taken = after.actions[-1]
            round_.actions.append(
                {
                    "action": action,
                    "amount_minor": str(taken.amount_minor),
                    "by": by,
                    "party": "operator-1" if by == "player" else SERVER_PARTY,
                    "phase": taken.phase.value,
                    "request_digest": hashlib.sha256(self.random.take(16)).hexdigest(),
                    "time": self.now(),
                }
            )
            round_.seat = after

    def settle(self, worker: Worker, player: SessionRecord, *, transcript: bytes | None = None) -> str:
        """The final of the open round. Another `transcript` is a lie told consistently: everything follows from it."""
        round_ = player.round
        assert round_ is not None
        if transcript is not None:
            round_.transcript = transcript
            round_.seat = self._dealt_anew(player, round_)
        settlement = games.settle(round_.seat)
        body = {
            **self._revealed(round_),
            "outcome": outcome_object(settlement),
            "settlement": settlement_objects(settlement),
            "status": "settled",
        }
        return self._final(worker, player, body, settlement.staked_minor, settlement.returned_minor)

    @staticmethod
    def _dealt_anew(player: SessionRecord, round_: Round) -> Seat:
        placed = {bet: amount for bet, amount in round_.seat.bets if bet in player.ruleset.rules.placed_bets}
        funds = round_.before - sum(round_.seat.bets[index][1] for index in range(len(placed) + 1))
        deck = transcript_to_deck(round_.transcript)
        (seat,) = games.deal(player.ruleset, deck, [SeatStakes(round_.seat.seat_no, placed, funds)])
        for action in round_.actions:
            seat = games.apply(seat, Action(action["action"]))
        return seat

    def admins(self, worker: Worker) -> None:
        """Two admins, each with a certificate that an event tells of; once."""
        for number, party in enumerate(ADMINS, 1):
            if party not in self._admins:
                self._admins.add(party)
                subject = f"admin {party} {number:064x}"
                self.event(worker, "CERTIFICATE_ADDED", subject=subject, before="denied", after="allowed")

    def pause(self, worker: Worker, player: SessionRecord) -> str:
        """A malfunction of the open round."""
        return self.event(worker, actor=ADMINS[0], reason="SCREEN_STUCK", **player.named())

    def void(
        self,
        worker: Worker,
        player: SessionRecord,
        reason: str = "MALFUNCTION",
        *,
        paused_by: Worker | None = None,
        malfunction: str = "",
    ) -> str:
        """The open round made void by two admins; DECK_UNRECOVERABLE reveals nothing. `paused_by` is the instance that
        signs the events, by default the one of the final; `malfunction` the event of a pause before.
        """
        round_ = player.round
        assert round_ is not None
        first = paused_by or worker
        self.admins(first)
        malfunction = malfunction or self.pause(first, player)
        proposed = self.now()
        self.event(first, "VOID_PROPOSED", actor=ADMINS[0], reason=reason, time=proposed, **player.named())
        void: Body = {
            "approvals": [{"party": ADMINS[0], "time": proposed}, {"party": ADMINS[1], "time": self.now()}],
            "malfunction": malfunction,
            "reason": reason,
        }
        body: Body = {"status": "void", "void": void}
        staked = sum(amount for _, amount in round_.seat.bets)
        if reason != "DECK_UNRECOVERABLE":
            rows = [
                {"bet": bet, "result": "push", "returned_minor": str(amount), "stake_minor": str(amount)}
                for bet, amount in round_.seat.bets
            ]
            body |= {**self._revealed(round_), "settlement": rows}
            finished = round_.seat
            while finished.phase is not Phase.SHOWDOWN:
                finished = games.apply(finished, games.default_action(finished))
            settlement = games.settle(finished)
            void["would_have_been"] = settlement_objects(settlement)
            void["would_have_outcome"] = outcome_object(settlement)
        return self._final(worker, player, body, staked, staked)

    def _revealed(self, round_: Round) -> Body:
        seat = round_.seat
        return {
            "cards": {
                "board": list(format_cards(seat.board)),
                "burns": list(format_cards(seat.burns)),
                "dealer_cards": list(format_cards(seat.dealer_cards)),
                "hole_cards": list(format_cards(seat.hole_cards)),
            },
            "deck": list(format_cards(transcript_to_deck(round_.transcript))),
            "salt": round_.salt.hex(),
            "transcript": self._bend(round_.transcript).hex(),
        }

    def _final(self, worker: Worker, player: SessionRecord, body: Body, staked: int, returned: int) -> str:
        round_ = player.round
        assert round_ is not None
        running = first_actions_hash(round_.commitment)
        for action in round_.actions:
            running = next_actions_hash(running, action)
        player.staked += staked
        player.returned += returned
        body |= {
            "actions": round_.actions,
            "actions_hash": running.hex(),
            "balance_after_minor": str(player.balance),
            "balance_before_minor": str(round_.before),
            "opening": round_.opening,
            "returned_minor": str(returned),
            "round_id": round_.round_id,
            "seat_no": str(round_.seat.seat_no),
            "round_no": str(player.round_no),
            "staked_minor": str(staked),
        }
        player.round = None
        return self.link(worker, player, "round_final", body)

    def play(self, worker: Worker, player: SessionRecord, stakes: Mapping[str, int], actions: Sequence[str]) -> str:
        """One whole round of one player."""
        self.deal(worker, [player], stakes)
        self.act(player, actions)
        return self.settle(worker, player)

    # --- what goes out ---

    def export(self) -> bytes:
        return join(self.lines)

    def keys(self) -> bytes:
        return format_key_bundle(self.bundle)
