"""A second verifier, written from docs/formats.md and docs/verify.md: one file, standard library and cryptography only.

    python independent_verifier.py FILE... --keys KEYS [--root FINGERPRINT]

The same checks, the same counting and the same last line as `certify replay`, and none of its code. Keeps everything in
memory.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import bisect
import hashlib
import itertools
import json
import re
import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Body = dict[str, Any]


class FaultError(Exception):
    """A check that failed: its number and name, and what is wrong."""


def need(check: str, right: object, what: str = "") -> None:
    if not right:
        raise FaultError(check, what)


# --- what documents look like (formats 1, 3, 4, 5, 11); a trailing ? marks what may be absent -----------------------

# fmt: off
TEXTS = {
    "int": r"0|[1-9][0-9]{0,17}", "pos": r"[1-9][0-9]{0,17}", "hash": r"[0-9a-f]{64}", "currency": r"[A-Z]{3}",
    "ulid": r"[0-7][0-9A-HJKMNP-TV-Z]{25}", "code": r"[A-Z][A-Z0-9_]{0,62}", "name": r"[a-z0-9][a-z0-9._-]{0,63}",
    "time": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", "card": r"[2-9TJQKA][cdhs]",
    "version": r"[0-9A-Za-z][0-9A-Za-z.+-]{0,31}", "bytes": r"([0-9a-f]{2}){1,4096}",
    "file": r"[a-z0-9][a-z0-9._/-]{0,127}", "origin": r"[a-z0-9][a-z0-9._/-]{0,112}/[1-9][0-9]{3}h[12]",
    "gamecode": r"#[0-2][0-9]:[0-5][0-9]:[0-5][0-9](-[1-9][0-9]{0,5})?", "bet": "ante|blind|trips|play|aa|call",
    "shuffle": r"[a-z0-9][a-z0-9./-]{0,63}", "table": r"(|[a-z0-9][a-z0-9._-]{0,63})", "id16": r"[0-9A-Z]{16}",
    "note": r"[ -!#-\[\]-~]{0,200}", "subject": r"[ -!#-\[\]-~]{1,200}", "reference": r"[ -!#-\[\]-~]{0,256}",
    "flag": "", "result": "win|lose|push", "by": "player|timer|rule", "phase": "preflop|flop|river",
    "status": "settled|void", "action": "check|play_4x|play_3x|play_2x|play_1x|call|fold",
    "way": "debit|credit", "mode": "seamless", "play": "demo", "ending": "time|decided|paused",
    "campaign": r"[a-z0-9][a-z0-9._-]{0,31}",
    "winner": "player|dealer|tie|fold",
    "category": "high_card|pair|two_pair|trips|straight|flush|full_house|quads|straight_flush|royal_flush",
}
# fmt: on
SHAPES: dict[str, Any] = {}
for row in (
    """
RULES id:name sha256:hash version:version
BOOT instance:name last_draw_no:int last_statement_no:int
HAND best5:5*card category:category
OUTCOME dealer_hand:HAND dealer_qualifies:flag flop_hand?:HAND outcome:winner player_hand:HAND
ROW bet:bet result:result returned_minor:int stake_minor:pos
BET amount_minor:pos bet:bet
DEAL draw_no:pos game_code:gamecode instance:name reseed_counter:pos round_id:ulid ruleset:RULES seats:pos
. seats_root:hash shuffle:shuffle start_time:time table:table
SEAT bets:8*BET seat_no:pos session_id:ulid
ACTION action:action amount_minor:int by:by party:name phase:phase request_digest:hash time:time
APPROVAL party:name time:time
VOID approvals:2*APPROVAL malfunction:hash reason:code would_have_been?:8*ROW would_have_outcome?:OUTCOME
CARDS board:5*card burns:4*card dealer_cards:2*card hole_cards:2*card
LIMITS duration_ms?:pos loss_minor?:pos stake_minor?:pos
BLOCK currency?:currency operator_reference?:reference player?:reference reason?:code regulator?:name
. regulator_participation_id?:id16 regulator_session_id?:id16 wallet_transaction_id?:reference
PRIVATE block:BLOCK salt:hash
SPAN first:pos instance:name last:pos
LINKS first:pos last:pos session_id:ulid
LIMIT bet:bet max_minor:pos min_minor:pos
DRAWN draw_no:pos instance:name reseed_counter:pos shuffle:shuffle table_round:hash
WINDOW close_time:time end:ending open_time:time phase:phase
SHOWN board:5*card burns:4*card dealer_cards:2*card hole_cards?:2*card
HANDS dealer_hand:HAND dealer_qualifies:flag flop_hand?:HAND player_hand?:HAND
TABLEVOID approvals:2*APPROVAL malfunction:hash reason:code
BOXSEAT bets:8*BET box?:pos seat_no:pos session_id:ulid
SEATOUTCOME flop_hand?:HAND outcome:winner player_hand?:HAND
CHECKPOINT origin:origin root:hash size:int
root.root_key previous?:hash public_key:hash
root.node_key development:flag node:name public_key:hash
root.key_end instance?:name key:hash last_statement_no?:int reason:code
root.revocation key:hash origin?:origin reason:code size?:int
node.export_scope instances:100*SPAN reason:code sessions:200*LINKS
node.report name:file sha256:hash
node.countersignature party:name statement:hash
node.instance_start N boot_no:pos checkpoint?:CHECKPOINT draws_in_flight_max:pos manifest:hash node:name
. previous_boot?:BOOT public_key:hash rng_version:version software_version:version store_epoch:ulid worker:int
instance.instance_end N last_draw_no:int reason:code
instance.instance_lost N lost:BOOT reason:code
instance.draw_window N draws_in_flight_max:pos
instance.discarded_draw N draw_no:pos reason:code reseed_counter:pos round_id?:ulid transcript:bytes
instance.event N actor?:name after?:note before?:note code:code reason?:code round_id?:ulid session_id?:ulid
. subject?:subject
instance.artifact N bytes:pos name:file sha256:hash
instance.table_round N betting_close_time:time betting_ms:int betting_open_time:time config:hash decision_ms:int
. early_close:flag game_code:gamecode hands:pos jurisdiction:RULES leaves:pos limits:8*LIMIT previous:hash
. round_id:ulid ruleset:RULES seats_root:hash table:name table_round_no:pos
instance.table_seats N round_id:ulid salt:hash seats:pos table_round:hash
instance.table_deal N commitment:hash deal:DRAWN round_id:ulid
instance.table_final N cards?:SHOWN deal?:hash deck?:52*card hands?:HANDS round_id:ulid salt?:hash status:status
. table_round:hash transcript?:bytes void?:TABLEVOID windows:64*WINDOW
instance.session_open L currency:currency funding?:mode jurisdiction:RULES limits?:LIMITS operator:name private:hash
. ruleset:RULES table?:name test_regulator:flag
instance.session_open/2 L bet_limits?:8*LIMIT currency:currency funding?:mode jurisdiction:RULES limits?:LIMITS
. mode?:play operator:name private:hash ruleset:RULES table?:name test_regulator:flag
instance.purchase L amount_minor:pos balance_after_minor:int balance_before_minor:int bought_minor:pos
. participation_id:ulid private:hash purchase_no:pos
instance.transfer L amount_minor:int direction:way round_id:ulid transaction_id:ulid
instance.free_bet L amount_minor:int campaign?:campaign direction:way expiry_time?:time grant_id:ulid round_id:ulid
. transaction_id:ulid
instance.round_opening L balance_after_minor:int balance_before_minor:pos commitment:hash deal:DEAL
. path:8*hash seat:SEAT round_no:pos
instance.round_final L actions:8*ACTION actions_hash:hash balance_after_minor:int balance_before_minor:pos cards?:CARDS
. deck?:52*card opening:hash outcome?:OUTCOME returned_minor:int round_id:ulid salt?:hash seat_no:pos settlement?:8*ROW
. round_no:pos staked_minor:pos status:status transcript?:bytes void?:VOID
instance.seat_opening L balance_after_minor:int balance_before_minor:pos deal:hash round_id:ulid round_no:pos
. seat:BOXSEAT
instance.seat_final L actions:8*ACTION actions_hash:hash balance_after_minor:int balance_before_minor:pos
. hole_cards?:2*card opening:hash outcome?:SEATOUTCOME returned_minor:int round_id:ulid round_no:pos seat_no:pos
. settlement:8*ROW staked_minor:pos status:status table_final:hash would_have_been?:8*ROW
. would_have_outcome?:SEATOUTCOME
instance.participation_end L bought_minor:pos paid_out_minor:int participation_id:ulid private:hash returned_minor:int
. rounds:int staked_minor:int
instance.session_close L reason:code rounds:int
""".replace("\n. ", " ")
    .replace(" L ", " N link_no:pos previous:hash session_id:ulid ")
    .replace(" N ", " instance:name statement_no:pos ")
    .split("\n")[1:-1]
):
    label, *parts = row.split()
    SHAPES[label.rpartition(".")[2]] = dict(part.split(":") for part in parts)
    if "." in label:
        SHAPES[label.partition(".")[2]] |= {
            "kind": label.partition(".")[2].partition("/")[0],
            "time": "time",
            " role": label.partition(".")[0],
        }


def fits(shape: str, value: Any) -> bool:
    if "*" in shape:
        most, inner = shape.split("*")
        return type(value) is list and len(value) <= int(most) and all(fits(inner, item) for item in value)
    if shape in SHAPES and isinstance(value, dict):
        fields = {name.rstrip("?"): inner for name, inner in SHAPES[shape].items() if name != " role"}
        due = {name for name in SHAPES[shape] if name[-1] != "?" and name != " role"}
        return due <= value.keys() <= fields.keys() and all(
            value[name] == fields[name] if name == "kind" else fits(fields[name], value[name]) for name in value
        )
    if shape == "flag":
        return type(value) is bool
    good = type(value) is str and shape in TEXTS and re.fullmatch(TEXTS[shape], value, re.ASCII) is not None
    return good and (shape != "time" or exists(value))


def exists(time: str) -> bool:
    try:
        return datetime(*map(int, re.findall("[0-9]+", time)[:6]), tzinfo=UTC).year >= 1970  # type: ignore[misc,arg-type]
    except ValueError:
        return False


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_canonical(check: str, data: bytes, shape: str) -> Any:
    try:
        value = json.loads(data.decode("ascii"))
        need(check, fits(shape, value) and canonical(value) == data and len(data) <= 32768, "form")
    except (ValueError, RecursionError):
        raise FaultError(check, "no JSON") from None
    return value


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def half(size: int) -> int:
    return 1 << (size - 1).bit_length() - 1


def tree_root(leaves: list[bytes]) -> bytes:
    left = half(len(leaves)) if len(leaves) > 1 else 0
    return sha(b"\1", tree_root(leaves[:left]), tree_root(leaves[left:])) if left else leaves[0]


def leaves_for(seats: int) -> int:
    """How many leaves the padded tree of a table has."""
    return max(64, 1 << (seats - 1).bit_length())


def padding(salt: bytes, seat_no: int) -> bytes:
    return sha(b"rgs/padding/v1\0", salt, seat_no.to_bytes(4, "big"))


def path_root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root that the path claims for leaf `index` of `size`; nothing that could be one if its length is wrong."""
    if size == 1 or not path or index >= size:
        return leaf if size == 1 and not path else b""
    left, (*inner, last) = half(size), path
    if index < left:
        return sha(b"\1", path_root(leaf, index, left, inner) or b"?", last)
    return sha(b"\1", last, path_root(leaf, index - left, size - left, inner) or b"?")


# --- envelopes and keys (formats 2, 3, 12, 13; checks 1 to 5) -------------------------------------------------------

# fmt: off
ENVELOPE = re.compile(rb'{"payload":"([A-Za-z0-9+/]+={0,2})","payloadType":"([a-z0-9./+_-]{1,100})","signatures":\[{'
                      rb'"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"}\]}')


# fmt: on


def open_envelope(data: bytes) -> tuple[str, bytes, str, bytes]:
    """Kind (or the payload type, if it is none), payload, keyid, signature."""
    found = ENVELOPE.fullmatch(data)
    try:
        need("2 envelope", found and len(data) <= 65535, "form")
        payload64, payload_type, keyid, signature64 = found.groups() if found else ()
        payload, signature = base64.b64decode(payload64, validate=True), base64.b64decode(signature64, validate=True)
    except binascii.Error:
        raise FaultError("2 envelope", "base64") from None
    need("2 envelope", (base64.b64encode(payload), base64.b64encode(signature)) == (payload64, signature64), "base64")
    kind = re.sub(r"application/vnd\.rgs\.([a-z-]+)\.v([12])\+json", r"\1/\2", payload_type.decode()).replace("-", "_")
    kind = kind.removesuffix("/1")
    known = " role" in SHAPES.get(kind, {}) and payload_type.decode() == type_of(kind)
    return kind if known else payload_type.decode(), payload, keyid.decode(), signature


def type_of(kind: str) -> str:
    name, _, version = kind.partition("/")
    return f"application/vnd.rgs.{name.replace('_', '-')}.v{version or 1}+json"


def check_signature(public_key: bytes, kind: str, payload: bytes, signature: bytes) -> None:
    message = f"DSSEv1 {len(type_of(kind))} {type_of(kind)} {len(payload)} ".encode() + payload
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise FaultError("3 key", "signature") from None


SHARD = "[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*/[1-9][0-9]{3}h[12]"


class Keys:
    def __init__(self, bundle: bytes) -> None:
        self.known: dict[str, SimpleNamespace] = {}
        self.ends: dict[str, list[Body]] = defaultdict(list)
        self.revoked, self.statements, self.newest, self.root = set(), set(), "", ""  # type: ignore[var-annotated]
        head, foot = b'{"format":"rgs/keys/v1","statements":[\n', b"\n]}\n"
        need(
            "3 key", bundle.startswith(head) and bundle.endswith(foot) and len(bundle) > len(head) + len(foot), "bundle"
        )
        for data in bundle[len(head) : -len(foot)].split(b",\n"):
            self.take(data)

    def take(self, data: bytes) -> None:
        kind, payload, keyid, signature = open_envelope(data)
        need("3 key", kind in ("root_key", "node_key", "key_end", "revocation"), "in a bundle")
        body = read_canonical("3 key", payload, kind)
        if not self.newest:
            self.root = keyid
            need("3 key", kind == "root_key" and keyid == sha(bytes.fromhex(body["public_key"])).hex(), "first root")
        need("3 key", keyid == (self.newest or self.root), "signed by the newest root")
        key = self.known[keyid].key if self.newest else bytes.fromhex(body["public_key"])
        check_signature(key, kind, payload, signature)
        self.in_force(keyid, body)
        if kind == "root_key":
            need("3 key", body.get("previous", "") == self.newest, "previous")
            self.newest = self.add("root", body, "", self.newest)
        elif kind == "node_key":
            self.add("node", body, body["node"], self.newest)
        elif kind == "key_end":
            need("3 key", ("instance" in body) == ("last_statement_no" in body), "half an end")
            self.ends[body["key"]].append(body)
        else:
            # A position is of use to who reads the log: in an export all that the key signed is refused.
            need("3 key", ("origin" in body) == ("size" in body), "half a position")
            need("3 key", "origin" not in body or re.fullmatch(SHARD, body["origin"]), "a position in no log")
            self.revoked.add(body["key"])
        self.statements.add(sha(b"\0", data))

    def add(self, role: str, body: Body, name: str, above: str) -> str:
        key = bytes.fromhex(body["public_key"])
        keyid = sha(key).hex()
        need("3 key", keyid not in self.known, "a key named twice")
        self.known[keyid] = SimpleNamespace(role=role, key=key, name=name, above=above, since=body["time"])
        return keyid

    def in_force(self, keyid: str, body: Body) -> None:
        key = self.known.get(keyid)
        if key is None:  # the first root, in the bundle's first statement
            return
        need("3 key", body["time"] >= key.since, "dated before its key")
        ends = self.ends[keyid]
        for end in ends:
            if key.role == "instance" and "instance" in end:
                need("3 key", body["instance"] == end["instance"], "ended")
            else:
                need("3 key", body["time"] <= end["time"], "ended")
        for end in (*ends, *(self.ends[key.above] if key.role == "instance" else ())):
            if "statement_no" in body and body["instance"] == end.get("instance"):
                need("3 key", int(body["statement_no"]) <= int(end["last_statement_no"]), "ended")

    def read(self, line: bytes) -> SimpleNamespace:
        """Checks 1 to 4."""
        cut, beside = line.find(b',"private":'), line.find(b',"path":')
        need(
            "1 line",
            line.endswith(b"}\n") and len(line) <= 73728 and line.startswith(b'{"envelope":') and cut > 0,
            "form",
        )
        data, rest, path = line[12:cut], line[cut + 11 : -2], None
        if 0 < beside < cut:
            data, path = line[12:beside], read_canonical("1 line", line[beside + 8 : cut], "20*hash")
            need("1 line", path, "an empty path")
        private = None if rest == b"null" else read_canonical("1 line", rest, "PRIVATE")
        kind, payload, keyid, signature = open_envelope(data)
        need("3 key", kind in SHAPES and keyid in self.known, "payload type or key is not known")
        key, above = self.known[keyid], keyid
        need("3 key", key.role == SHAPES[kind][" role"], "role")
        listed = sha(b"\0", data) in self.statements  # and verified with the bundle
        while above and not listed:
            need("3 key", above not in self.revoked, "revoked")
            above = self.known[above].above
        check_signature(key.key, kind, payload, signature)
        need("3 key", key.role != "root" or listed, "not in the bundle")
        body = read_canonical("4 schema", payload, kind)
        signs_for = (
            body["node"] if kind == "instance_start" else body["instance"] if key.role == "instance" else key.name
        )
        need("3 key", signs_for == key.name, "the key of another")
        if not listed:
            self.in_force(keyid, body)
        need("1 line", path is None or kind == "seat_opening", "a path beside another kind")
        digest = sha(b"\0", data).hex()
        kind, _, version = kind.partition("/")
        return SimpleNamespace(
            kind=kind, body=body, hash=digest, private=private, keyid=keyid, path=path, second=version == "2"
        )


# --- the games (formats 6, 7; verify 5; checks 10, 13 to 17) --------------------------------------------------------

RANKS, SUITS = "23456789TJQKA", "cdhs"
FACES = [rank + suit for suit in SUITS for rank in RANKS]
CATEGORIES = TEXTS["category"].split("|")
PLAIN = ["player2", "dealer2", "board3", "board1", "board1"]
BURNT = ["player2", "dealer2", "burn1", "board3", "burn1", "board1", "board1"]
# fmt: off
RULESETS = {(name, "2" if name == "uth-lugano" else "1", digest): SimpleNamespace(
                 game=game, deal=deal, seats=seats, shared=name == "uth-online",
                 side_survives=survives, step=step, at_table=seats > 1)
            for name, digest, game, deal, seats, survives, step in (
    ("uth-solo", "e7a21d756abc57e02fb25c4fe3e6e7904dd7e361808a461e55d908e26a8d2988", "uth", PLAIN, 1, True, 2),
    ("uth-online", "4bf344ccd56809d212527d966c16d0f32e33d9ed535b330bbcb998001a2db317", "uth", PLAIN, 256, True, 2),
    ("uth-seven-box", "1159bb74cc873b20d70c1c212fd45247bc5f87e36954490afecd700ec78b31db", "uth", BURNT, 7, True, 2),
    ("uth-lugano", "8f4584ef5872be2d6ee1b4072a1edf4f7fe8574d362bb947709815efc1bb3ef8", "uth", BURNT, 7, False, 2),
    ("casino-holdem", "ea993860eb87d11cce65dd25bbe8b40a26f077fd165ffa0105684d86ded0055b", "che", PLAIN, 1, False, 1))}
FREE_BETS = {("it-adm", "3"), ("demo", "3"), ("demo-seamless", "1")}
CLOSE_EARLY = {("it-adm", "2"), ("it-adm", "3"), ("demo", "2"), ("demo", "3"), ("demo-seamless", "1")}
PLAY_MONEY = {("it-adm", "3"), ("demo", "3"), ("demo-seamless", "1")}
PLAYED_WITH = {("demo", "3"): ("EUR", "CHF", "GBP", "JPY"), ("demo-seamless", "1"): ("EUR", "CHF", "GBP", "JPY")}
JURISDICTIONS = {(name, version, digest): SimpleNamespace(currencies=PLAYED_WITH.get((name, version), (currency,)),
                                                          cap=cap, interval_ms=pace, test_regulator=test, ids=ids,
                                                          early_close=(name, version) in CLOSE_EARLY,
                                                          free_bets=(name, version) in FREE_BETS,
                                                          demo=(name, version) in PLAY_MONEY,
                                                          tables=version != "1" or name == "demo-seamless")
                 for name, currency, cap, pace, test, ids, digests in (
    ("it-adm", "EUR", 100_000, 0, False, True,
     {"1": "0dd46b73de2ea667437effbcefb57e736e0cf2adc175dd3e36d7ccbb4e494c1b",
      "2": "d6f9f13b7d8e31a1dea653641fd8e239d6531d2daaa3629cf32af59dd794c514",
      "3": "5652b7ee65694854545eaff2253a40dce30e889e14aeaaaefc141442799629e2"}),
    ("gb-ukgc", "GBP", 1_000_000, 5000, False, False,
     {"1": "6ad7ae526c57f2fd27aa36cdf1ef7c658a908cc3f2f60c96d651d0a2aee72180",
      "2": "987bf2a67718e53f874ea42ed3646e199f8d032c1a84445227e0b191c26f61e2",
      "3": "947a7fc54dc150d1f921e12636bb7dbb7f82449762fdb8755ebcd52dea202b1f"}),
    ("demo", "EUR", 100_000, 0, True, True,
     {"1": "6aa6dd5ae0e498f04f0ca3f1cdf51c2578a4d696313eb24c46294cf3c9d0a80a",
      "2": "c817563ee04f542370a045ad8312ae9fed9c6bd9391d784ed89a281974151726",
      "3": "7ca394b78512f0df2b898faf83c29d4591aa2963c5d4d8da0f5c18db39943b30"}),
    ("demo-seamless", "EUR", 100_000, 0, True, False,
     {"1": "096c2d00c8290d168d9c5ae580cb1a4e35b5c24ad9d13c77cdde0d2891c8e6a2"}))
                 for version, digest in digests.items()}
LIMITS = {"ante": (10, 100_000), "trips": (10, 10_000), "aa": (10, 10_000)}
# From high card to royal flush, what is paid on 2 staked; 0 pushes, -1 is lost. A pair of aces pays AA, see below.
PAYS = {"blind": [0, 0, 0, 0, 2, 3, 6, 20, 100, 1000], "trips": [-1, -1, -1, 6, 8, 14, 16, 60, 80, 100],
        "che ante": [2, 2, 2, 2, 2, 4, 6, 20, 40, 200], "aa": [-1, -1, 14, 14, 14, 40, 60, 80, 100, 200]}
OPENING = {"uth": ["ante", "blind", "trips"], "che": ["ante", "aa"]}
PHASES = {"uth": {"preflop": {"check": (0, "flop"), "play_4x": (4, ""), "play_3x": (3, "")},
                  "flop": {"check": (0, "river"), "play_2x": (2, "")}, "river": {"fold": (0, ""), "play_1x": (1, "")}},
          "che": {"flop": {"fold": (0, ""), "call": (2, "")}}}  # the first action of a phase is its default


# fmt: on


def rank(card: str) -> int:
    return RANKS.index(card[0]) + 2


def value_of(cards: tuple[str, ...]) -> tuple[int, list[int]]:
    """Category and the ranks in the order in which they decide, of five cards."""
    ranks = sorted(map(rank, cards), reverse=True)
    order = sorted(set(ranks), key=lambda one: (-ranks.count(one), -one))
    counts = [ranks.count(one) for one in order]
    if len(order) == 5:
        order = [5, 4, 3, 2, 14] if order == [14, 5, 4, 3, 2] else order
        straight, flush = (
            order[0] - order[3] == 3 and order[4] in (order[3] - 1, 14),
            len({card[1] for card in cards}) == 1,
        )
        return (8 + (order[0] == 14) if straight and flush else 4 if straight else 5 if flush else 0), order
    return {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1}[tuple(counts)], order


def best(cards: list[str]) -> tuple[tuple[int, list[int]], Body]:
    """The best five by trying all; of equal ones the one of the first suits."""
    fives = list(itertools.combinations(cards, 5))
    top = max(value_of(five) for five in fives)
    shown = [
        sorted(five, key=lambda card: (top[1].index(rank(card)), SUITS.index(card[1])))
        for five in fives
        if value_of(five) == top
    ]
    return top, {
        "best5": min(shown, key=lambda five: [SUITS.index(card[1]) for card in five]),
        "category": CATEGORIES[top[0]],
    }


def pushed(bets: list[tuple[str, int]]) -> list[Body]:
    return [
        {"bet": bet, "result": "push", "returned_minor": str(stake), "stake_minor": str(stake)} for bet, stake in bets
    ]


def shuffled(transcript: bytes) -> list[str]:
    deck, unread = list(range(52)), list(transcript)
    for place in range(51, 0, -1):
        while unread and unread[0] >= 256 - 256 % (place + 1):
            del unread[0]
        need("13 transcript", unread, "a byte is missing")
        other = unread.pop(0) % (place + 1)
        deck[place], deck[other] = deck[other], deck[place]
    need("13 transcript", not unread, "a byte is left over")
    return [FACES[card] for card in deck]


def dealt(rules: SimpleNamespace, deck: list[str], seats: int, seat_no: int) -> Body:
    top, cards = iter(deck), {"board": [], "burn": [], "dealer": [], "player": []}  # type: ignore[var-annotated]
    for block in rules.deal:
        for seat in range(seats if block == "player2" and not rules.shared else 1):
            taken = list(itertools.islice(top, int(block[-1])))
            cards[block[:-1]] += taken if block != "player2" or rules.shared or seat + 1 == seat_no else []
    return {
        "board": cards["board"],
        "burns": cards["burn"],
        "dealer_cards": cards["dealer"],
        "hole_cards": cards["player"],
    }


def settled(rules: SimpleNamespace, cards: Body, bets: list[tuple[str, int]], folded: bool) -> tuple[Body, list[Body]]:
    """The outcome object and the settlement rows."""
    player, player_hand = best(cards["hole_cards"] + cards["board"])
    dealer, dealer_hand = best(cards["dealer_cards"] + cards["board"])
    qualifies, uth = dealer >= (1, [4] if rules.game == "che" else []), rules.game == "uth"
    winner = "fold" if folded else "player" if player > dealer else "dealer" if player < dealer else "tie"
    outcome = {"dealer_hand": dealer_hand, "dealer_qualifies": qualifies, "outcome": winner, "player_hand": player_hand}
    side = player
    if not uth:
        side, outcome["flop_hand"] = best(cards["hole_cards"] + cards["board"][:3])
    table = PAYS["blind" if uth else "che ante"][player[0]]
    pays = {
        "player": {"ante": 2 if uth else table, "blind": table, "play": 2, "call": 2},
        "tie": dict.fromkeys(("ante", "blind", "play", "call"), 0),
    }.get(winner, dict.fromkeys(("blind", "play", "call", "ante"), -1))
    if not qualifies and not folded:
        pays |= {"ante": 0} if uth else {"ante": table, "call": 0}
    name = "trips" if uth else "aa"
    pays[name] = -1 if folded and not rules.side_survives else PAYS[name][side[0]]
    if name == "aa" and side[0] == 1 and side[1][0] == 14 and not folded:
        pays[name] = 14
    return outcome, [
        {
            "bet": bet,
            "result": "lose" if pays[bet] < 0 else "win" if pays[bet] else "push",
            "returned_minor": str(0 if pays[bet] < 0 else stake + stake * pays[bet] // 2),
            "stake_minor": str(stake),
        }
        for bet, stake in bets
    ]


# --- the procedure (verify 2, 3) ------------------------------------------------------------------------------------

# fmt: off
PLAYABLE = {"purchase", "free_bet", "round_opening", "seat_opening", "participation_end"}
FOLLOWS = {"": {"session_open"}, "session_open": {"purchase", "session_close"}, "purchase": PLAYABLE,
           "round_final": PLAYABLE, "round_opening": {"round_final"}, "participation_end": {"session_close"},
           "seat_final": PLAYABLE, "seat_opening": {"seat_final"}, "granted": {"round_opening"},
           "granted final": {"free_bet"}, "reclaimed": PLAYABLE}
BETS = {"": {"session_open"}, "session_open": {"transfer", "session_close"}, "before": {"round_opening"},
        "round_opening": {"transfer", "round_final"}, "within": {"transfer", "round_final"},
        "round_final": {"transfer", "session_close"}, "behind": {"transfer", "session_close"}}
# fmt: on
REVEALED = {"salt", "transcript", "deck", "cards"}
OPENINGS, FINALS = ("round_opening", "seat_opening"), ("round_final", "seat_final")
LATE_MS, MOST_SEATS = 10_000, 1 << 20


class Numbers:
    """The numbers of an instance (of which 1 is always there: head 1) or of a session's links (head 0)."""

    def __init__(self, whole: bool, head: int) -> None:
        self.whole, self.head, self.last, self.unbroken = whole, head, 0, True

    def is_wrong(self, number: int, ranges: list[tuple[int, int]]) -> bool:
        last, self.last = self.last, max(self.last, number)
        if number <= last + 1:
            return number <= last
        self.unbroken = False
        before = dict(zip((first for first, _ in ranges), (self.head, *(end for _, end in ranges)), strict=False))
        return before.get(number) != last if ranges else self.whole

    def end_is_wrong(self, ended: bool, ranges: list[tuple[int, int]]) -> bool:
        return self.last != ranges[-1][1] if ranges else self.whole and not ended


class Verifier:
    """Line by line, then `finish`."""

    def __init__(self, keys: Keys) -> None:
        self.keys, self.whole, self.begun = keys, True, False
        self.ranges: dict[str, dict[str, list[tuple[int, int]]]] = {"instance": {}, "session_id": {}}
        self.instances: dict[str, SimpleNamespace] = {}
        self.sessions: dict[str, SimpleNamespace] = {}
        self.rounds: dict[str, SimpleNamespace] = {}
        self.tables: dict[str, SimpleNamespace] = {}
        self.table_rounds: dict[str, SimpleNamespace] = {}
        self.deals: dict[str, SimpleNamespace] = {}
        self.lost: dict[str, Body] = {}
        self.faults: list[tuple[str, ...]] = []
        self.failed, self.done, self.seen, self.used = set(), set(), set(), set()  # type: ignore[var-annotated]
        self.malfunctions: dict[str, Body] = {}
        self.paused: dict[str, str] = {}
        self.proposed: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self.admins: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self.approvals: list[tuple[str, str, str]] = []
        self.holders: dict[str, str] = {}
        self.hidden = self.absent = 0
        self.all_rounds: list[SimpleNamespace] = []

    def emit(self, fault: FaultError, round_id: str = "") -> None:
        self.faults.append((*fault.args, round_id))
        self.failed |= {round_id} - {""}

    def passes(self, round_id: str, step: Any, *arguments: Any) -> bool:
        try:
            step(*arguments)
        except FaultError as fault:
            self.emit(fault, round_id)
            return False
        return True

    def line(self, line: bytes) -> None:
        try:
            reported = self.keys.read(line)
        except FaultError as fault:
            return self.emit(fault)
        kind, body, name = reported.kind, reported.body, reported.body.get("instance", "")
        if (
            kind == "instance_start"
            and not self.whole
            and name in self.instances
            and self.instances[name].hash == reported.hash
        ):
            return None
        of_round = kind in (*FINALS, "seat_opening") or kind.startswith("table_")
        round_id = body["deal"]["round_id"] if kind == "round_opening" else body["round_id"] if of_round else ""
        reported.readable = self.passes("", self.private, reported)
        if kind == "export_scope":
            self.passes("", self.scope, body)
        if "statement_no" not in body or (kind == "instance_start" and not self.passes("", self.start, reported)):
            return None
        instance = self.instances[name]
        self.begun = self.begun or kind != "instance_start"
        self.passes(round_id, self.number, instance, body)
        if kind != "instance_start" and not self.whole:
            self.passes(round_id, self.within, body)
        if "link_no" in body:
            self.link(reported, round_id, instance)
        elif kind == "instance_end":
            instance.end, instance.followed = int(body["last_draw_no"]), body["reason"] == "KEYS_CHANGED"
        elif kind == "instance_lost":
            self.passes("", self.lose, body)
        elif kind == "event":
            self.event(reported)
        elif kind == "table_deal":
            self.passes(round_id, self.draw, instance, body["deal"])
            self.passes(round_id, self.is_new, round_id)
            self.passes(round_id, self.table_deal, reported)
        elif kind.startswith("table_"):
            self.passes(round_id, getattr(self, kind), reported)
        elif kind == "draw_window":
            self.passes("", self.widen, instance, body)
        elif kind == "discarded_draw":
            self.passes("", self.draw, instance, body)
            self.passes("", shuffled, bytes.fromhex(body["transcript"]))
        return None

    def event(self, reported: SimpleNamespace) -> None:
        body, code = reported.body, reported.body["code"]
        round_id, subject = body.get("round_id", ""), body.get("subject", "").split(" ")
        if code == "TIME_JUMP":
            self.keys.known[reported.keyid].since = ""
        elif code == "MALFUNCTION":
            self.malfunctions[reported.hash], self.paused[round_id] = body, reported.hash
        elif code == "ROUND_RESUMED":
            self.paused.pop(round_id, None)
            self.proposed.pop(round_id, None)
        elif code == "VOID_PROPOSED":
            reported_by = (body.get("actor", ""), body.get("reason", ""), body["time"])
            self.proposed[round_id].append((*reported_by, body.get("session_id", "")))
        elif code in ("CERTIFICATE_ADDED", "CERTIFICATE_REMOVED") and len(subject) == 3 and subject[0] == "admin":
            _, party, finger = subject
            if self.holders.setdefault(finger, party) != party:
                return
            life, place = self.admins[party].setdefault(finger, ["~", "~"]), int(code == "CERTIFICATE_REMOVED")
            life[place] = body["time"] if life[place] == "~" else life[place]

    def private(self, reported: SimpleNamespace) -> None:
        if reported.private:
            salt, block = bytes.fromhex(reported.private["salt"]), canonical(reported.private["block"])
            need("5 private", sha(b"rgs/private/v1\0", salt, block).hex() == reported.body.get("private"), "hash")

    def scope(self, body: Body) -> None:
        need("22 scope", not self.whole or not self.begun, "the first scope behind numbered statements")
        self.whole = False
        for key, rows in (("instance", body["instances"]), ("session_id", body["sessions"])):
            for row in rows:
                ranges, first, last = self.of(key, row), int(row["first"]), int(row["last"])
                need("22 scope", first <= last and (not ranges or first > ranges[-1][1]), "range")
                shown = (self.instances if key == "instance" else self.sessions).get(row[key])
                since = max(first, 2) if key == "instance" else first
                over = shown and (shown.numbers.last >= since or getattr(shown, "kind", "") == "session_close")
                need("22 scope", not over, "behind what it names")
                self.ranges[key][row[key]] = [*ranges, (first, last)]

    def of(self, key: str, body: Body) -> list[tuple[int, int]]:
        return self.ranges[key].get(body.get(key, ""), [])

    def within(self, body: Body) -> None:
        held = [
            (self.of("instance", body), body["statement_no"]),
            (self.of("session_id", body), body.get("link_no", "0")),
        ]
        need("22 scope", any(first <= int(no) <= last for ranges, no in held for first, last in ranges), "in no scope")

    def start(self, reported: SimpleNamespace) -> None:
        name = reported.body["instance"]
        need("21 instance", name not in self.instances, "started before")
        self.instances[name] = SimpleNamespace(
            body=reported.body,
            hash=reported.hash,
            numbers=Numbers(self.whole, 1),
            draws=[],
            window=int(reported.body["draws_in_flight_max"]),
            end=None,
            followed=False,
        )
        before, since = reported.body.get("previous_boot", {}).get("instance"), reported.body["time"]
        if before in self.instances:  # the same process under another key signs what the boot before had begun to write
            one = self.instances[before]
            since = min(one.since, since) if one.followed or not (self.whole or one.end is not None) else since
        elif before and not self.whole:
            since = ""
        ranges = self.ranges["instance"].get(name, [])
        if not self.whole and (self.ranges["session_id"] or len(ranges) != 1 or ranges[0][0] != 1):
            since = ""  # a TIME_JUMP may have been left out
        self.instances[name].since = since
        self.passes("", self.keys.add, "instance", reported.body | {"time": since}, name, reported.keyid)

    def number(self, instance: SimpleNamespace, body: Body) -> None:
        need("6 number", not instance.numbers.is_wrong(int(body["statement_no"]), self.of("instance", body)), "order")
        need("21 instance", instance.end is None, "after the end")

    def draw(self, instance: SimpleNamespace, body: Body) -> None:
        draws, number, reseed = instance.draws, int(body["draw_no"]), int(body["reseed_counter"])
        place = bisect.bisect_left(draws, (number,))
        need("20 draws", place == len(draws) or draws[place][0] != number, "used twice")
        draws.insert(place, (number, reseed))
        need("20 draws", reseed == number, "reseed counter")
        in_flight = draws[-1][0] - len(draws) if instance.numbers.unbroken else 0
        need("20 draws", in_flight <= instance.window, "in flight")

    def widen(self, instance: SimpleNamespace, body: Body) -> None:
        before, after = instance.window, int(body["draws_in_flight_max"])
        instance.window = max(before, after)
        need("20 draws", after > before, "the window shrinks")

    def lose(self, body: Body) -> None:
        name = body["lost"]["instance"]
        need("21 instance", name not in self.lost and name != body["instance"], "lost twice, or itself")
        self.lost[name] = body

    def link(self, reported: SimpleNamespace, round_id: str, instance: SimpleNamespace) -> None:
        body, kind = reported.body, reported.kind
        chain = self.sessions.setdefault(
            body["session_id"],
            SimpleNamespace(
                numbers=Numbers(self.whole, 0),
                kind="",
                head="0" * 64,
                time="",
                rules=None,
                law=None,
                table=None,
                participation=None,
                purchase=0,
                bought=0,
                staked=0,
                returned=0,
                balance=0,
                stage=0,
                start="",
                codes=set(),
                seat=None,
                limits={},
                opened="",
                bets=None,
                paid_for="",
                operator=None,
                right=None,
                jurisdiction=None,
                free=None,
                back=0,
                gap=False,
                begun="",
                unseen="",
                demo=None,
                bet_limits={},
            ),
        )
        before, number, seat = chain.numbers.last, int(body["link_no"]), chain.seat
        if chain.kind == "session_close":
            return self.emit(FaultError("7 session", "closed before"), round_id)
        self.passes(round_id, self.order, chain, reported, before, number)
        if number <= before:
            return None
        answers = seat and kind in FINALS and body["opening"] == seat.hash
        if seat and not answers and self.leaves(chain, seat, reported):
            chain.seat = seat = None
        free, chain.begun, chain.unseen = chain.free, chain.unseen, ""
        if kind == "round_opening":
            deal, placed = body["deal"], [(bet["bet"], int(bet["amount_minor"])) for bet in body["seat"]["bets"]]
            chain.seat = SimpleNamespace(
                hash=reported.hash, body=body, round_id=round_id, bets=placed, rules=known(RULESETS, deal["ruleset"]),
                before=int(body["balance_before_minor"]), by_bets=bool(chain.bets), operator=chain.operator,
            )  # fmt: skip
            chain.seat.sound = self.passes(round_id, self.opening, chain, body, chain.seat)
            chain.free = free if free and free["round_id"] == round_id else None
            chain.unseen = round_id if chain.gap else ""
            round_ = self.rounds.get(round_id)
            if not round_ or round_.draw != (deal["instance"], deal["draw_no"]):
                self.passes(round_id, self.draw, instance, deal)
            self.passes(round_id, self.join, body, round_id)
            chain.stage, chain.balance = int(body["round_no"]), int(body["balance_after_minor"])
            chain.codes = (chain.codes if chain.start[:19] == deal["start_time"][:19] else set()) | {deal["game_code"]}
            chain.start, chain.rules = deal["start_time"], chain.rules or deal["ruleset"]
            chain.table = deal["table"] if chain.table is None else chain.table
        elif kind == "seat_opening":
            placed = [(bet["bet"], int(bet["amount_minor"])) for bet in body["seat"]["bets"]]
            table = self.deals.get(body["deal"])
            chain.seat = SimpleNamespace(
                hash=reported.hash, body=body, round_id=round_id, bets=placed, rules=table and table.rules,
                before=int(body["balance_before_minor"]), by_bets=bool(chain.bets), operator=chain.operator,
                table=table, funds=0,
            )  # fmt: skip
            chain.seat.sound = self.passes(round_id, self.seat_opening, chain, body, chain.seat)
            chain.free = free if free and free["round_id"] == round_id else None
            self.passes(round_id, self.take_seat, reported, chain.seat)
            chain.stage, chain.balance = int(body["round_no"]), int(body["balance_after_minor"])
            if table:
                chain.start, chain.rules = table.dealt["time"], chain.rules or table.body["ruleset"]
                chain.table = table.body["table"] if chain.table is None else chain.table
        elif kind in FINALS:
            self.passes(round_id, self.final if kind == "round_final" else self.seat_final, body, seat)
            if answers:
                self.answer(seat)
            chain.seat, chain.balance, chain.paid_for = None, int(body["balance_after_minor"]), body["round_id"]
            chain.free = free if free and free["round_id"] == body["round_id"] else None
            begun = chain.begun if answers else round_id if chain.gap else ""
            chain.unseen = round_id if kind == "round_final" and begun == round_id else ""
            granted, back = self.granted(chain, body, seat if answers else None)
            kind = "granted final" if chain.free else kind
            if chain.staked is not None:
                chain.staked += int(body["staked_minor"]) - granted
                chain.returned += int(body["returned_minor"]) - back
        elif kind == "free_bet":
            self.passes("", self.free_bet, chain, body)
            self.passes("", self.used_once, body)
            kind = self.paid(chain, body)
        elif kind == "transfer":
            self.passes("", self.transfer, chain, body)
            self.passes("", self.once, "transaction", body["transaction_id"])
            kind = self.moved(chain, body)
            chain.free = free if free and free["round_id"] == body["round_id"] else None
        else:
            first, chain.second, chain.free = chain.participation is None, reported.second, None
            self.passes("", getattr(self, kind), chain, body)
            if reported.readable and kind != "session_close":
                self.passes("", self.ids, chain, reported, first)
        chain.bets = False if chain.bets is None and reported.kind in PLAYABLE - {"round_opening"} else chain.bets
        chain.kind, chain.head, chain.time = kind, reported.hash, body["time"]
        if kind == "session_close" and chain.numbers.end_is_wrong(True, self.of("session_id", body)):
            self.emit(FaultError("22 scope", "more was promised"))
        return None

    def leaves(self, chain: SimpleNamespace, seat: SimpleNamespace, reported: SimpleNamespace) -> bool:
        """Whether a link that is not its final leaves the seat without one; behind a gap a debit for it does not."""
        kind, body = reported.kind, reported.body
        of_round = ("transfer", "debit", seat.round_id)
        within = not hasattr(seat, "table") and (kind, body.get("direction"), body.get("round_id")) == of_round
        ends = not within if chain.gap else kind in (*OPENINGS, *FINALS, "session_close")
        if ends:
            self.abandon(seat, chain.gap and not self.whole)
        return ends

    def once(self, what: str, name: str) -> None:
        need("23 ids", (what, name) not in self.used, f"{what} {name} twice")
        self.used.add((what, name))

    def granted(self, chain: SimpleNamespace, body: Body, seat: SimpleNamespace | None) -> tuple[int, int]:
        """What a free bet paid for the round of this final, and what of it came back."""
        if not chain.free and not chain.unseen:
            return 0, 0
        placed = None if seat is None else sum(stake for bet, stake in seat.bets if bet in ("ante", "blind"))
        chain.back = int(chain.free["amount_minor"]) if chain.free else placed
        if "settlement" in body:
            rows = [row for row in body["settlement"] if row["bet"] in ("ante", "blind") and row["result"] != "lose"]
            chain.back = sum(int(row["stake_minor"]) for row in rows)
        return (int(chain.free["amount_minor"]), chain.back) if chain.free else (0, 0)

    def paid(self, chain: SimpleNamespace, body: Body) -> str:
        debit, amount = body["direction"] == "debit", int(body["amount_minor"])
        chain.free = body if debit else None
        if chain.balance is not None:
            chain.balance = max(0, chain.balance + (amount if debit else -amount))
        return "granted" if debit else "reclaimed"

    def used_once(self, body: Body) -> None:
        if body["direction"] == "debit":
            self.once("grant", body["grant_id"])
        self.once("transaction", body["transaction_id"])

    def free_bet(self, chain: SimpleNamespace, body: Body) -> None:
        debit, amount = body["direction"] == "debit", int(body["amount_minor"])
        need("7 session", debit == ("campaign" in body) == ("expiry_time" in body), "terms")
        if not debit and chain.free:
            need("7 session", all(body[name] == chain.free[name] for name in ("grant_id", "round_id")), "of another")
        elif not debit and chain.kind:
            need("7 session", chain.kind == "round_final" and chain.begun == body["round_id"], "paid for no round")
        if debit or not chain.free:
            need("8 rules", (not chain.law or chain.law.free_bets) and not chain.demo, "free bets")
        if debit:
            need("18 balance", amount, "a free bet of nothing")
        elif chain.kind:
            need("18 balance", chain.back in (None, amount), "reclaimed")

    def ids(self, chain: SimpleNamespace, reported: SimpleNamespace, first: bool) -> None:
        kind, body = reported.kind, reported.body
        due = bool(chain.law and chain.law.ids and not chain.demo)
        if kind == "purchase" and first:
            self.once("participation", body["participation_id"])
        if not reported.private:
            self.absent += due
            return
        block = reported.private["block"]
        transaction, named = block.get("wallet_transaction_id", ""), block.get("regulator_participation_id", "")
        why = block.get("reason", "")
        if chain.demo or (chain.demo is None and why == "PLAY_MONEY" and kind != "session_open"):
            chain.demo = True
            outside = (transaction, named, block.get("regulator"), block.get("regulator_session_id"))
            need("23 ids", not any(outside), "an id with play money")
            need("23 ids", why == ("" if kind == "session_open" else "PLAY_MONEY"), "reason")
            return
        need("23 ids", why != "PLAY_MONEY" if kind == "session_open" else not why, "a reason with real money")
        if kind == "session_open":
            rules, named = known(RULESETS, body["ruleset"]), block.get("regulator_session_id", "")
            table = body.get("table", "") if not rules or rules.at_table else ""
            need("23 ids", named or not due, "no id of the session")
            need("23 ids", bool(named) == bool(block.get("regulator")), "id and regulator")
            need("23 ids", (block.get("regulator") == "test-regulator") == body["test_regulator"], "test regulator")
            where, known_here = ("session", named), ("session", named, table)
            need("23 ids", not named or where not in self.used or (table and known_here in self.used), "of another")
            self.used |= {where, known_here} if named else set()
            return
        was, chain.right = chain.right, named
        need("23 ids", named or not due, "no id of the participation")
        need("23 ids", was in (None, named), "another participation")
        if was is None and named:
            self.once("right", named)
        need("23 ids", transaction, "no transaction")
        self.once("transaction", transaction)

    def transfer(self, chain: SimpleNamespace, body: Body) -> None:
        debit, amount = body["direction"] == "debit", int(body["amount_minor"])
        need("18 balance", amount or not debit, "debit of nothing")
        if chain.seat:
            need("7 session", debit and body["round_id"] == chain.seat.round_id, "transfer within")
        elif debit:
            need("18 balance", not chain.balance, "not credited")
        else:
            need("7 session", chain.kind in ("", "round_final"), "credit")
            need("7 session", chain.paid_for in ("", body["round_id"]), "credit")
            need("18 balance", chain.balance in (None, amount), "credit")

    def moved(self, chain: SimpleNamespace, body: Body) -> str:
        debit, amount = body["direction"] == "debit", int(body["amount_minor"])
        chain.paid_for = body["round_id"]
        self.by_bets(chain)
        if debit and chain.seat and chain.seat.before is not None:
            chain.seat.before += amount
        if debit and chain.bought is not None:
            chain.bought += amount
        if chain.balance is not None:
            chain.balance = max(0, chain.balance + (amount if debit else -amount))
        return ("within" if chain.seat else "before") if debit else "behind"

    def by_bets(self, chain: SimpleNamespace) -> None:
        """Bets are debited one by one, unless a link before has shown that they are not."""
        if chain.bets is None and chain.seat and hasattr(chain.seat, "funds"):
            chain.seat.funds += 10**18  # above all amounts
        chain.bets = chain.bets is not False

    def order(self, chain: SimpleNamespace, reported: SimpleNamespace, before: int, number: int) -> None:
        wrong, gap = chain.numbers.is_wrong(number, self.of("session_id", reported.body)), number > before + 1
        chain.gap = gap
        if gap:
            chain.purchase = chain.bought = chain.staked = chain.returned = chain.balance = chain.stage = None
            chain.kind = chain.paid_for = chain.unseen = ""
            chain.free, seat = None, chain.seat
            if seat and not hasattr(seat, "table") and chain.bets is not False:
                seat.before = None
                if reported.kind == "round_final" and reported.body["opening"] == seat.hash:
                    self.by_bets(chain)
        follows = set() if chain.bets else set(FOLLOWS.get(chain.kind, ()))
        follows |= set() if chain.bets is False else set(BETS.get(chain.kind, ()))
        need("7 session", not wrong, "number")
        need("7 session", gap or reported.body["previous"] == chain.head, "previous")
        need("7 session", gap or reported.kind in follows, "order")
        need("7 session", reported.body["time"] >= chain.time, "time")

    def session_open(self, chain: SimpleNamespace, body: Body) -> None:
        rules, law = known(RULESETS, body["ruleset"]), known(JURISDICTIONS, body["jurisdiction"])
        chain.rules, chain.law, chain.table = body["ruleset"], law, body.get("table", "")
        chain.operator, chain.jurisdiction = body["operator"], body["jurisdiction"]
        chain.limits, chain.opened, chain.bets = body.get("limits", {}), body["time"], "funding" in body
        if not rules or not law:
            raise FaultError("8 rules", "ruleset, jurisdiction")
        need("8 rules", body["currency"] in law.currencies, "currency")
        chain.demo = body.get("mode") == "demo"
        chain.bet_limits = {
            one["bet"]: (int(one["min_minor"]), int(one["max_minor"])) for one in body.get("bet_limits", [])
        }
        need("8 rules", not chain.bets or not law.ids, "funding")
        need(
            "8 rules",
            (law.test_regulator or not body["test_regulator"]) and (chain.table or not rules.at_table),
            "regulator, table",
        )
        if chain.second:
            self.second(chain, body, rules, law)

    def second(self, chain: SimpleNamespace, body: Body, rules: SimpleNamespace, law: SimpleNamespace) -> None:
        """What version 2 of a session_open says."""
        need("8 rules", chain.demo or "bet_limits" in body, "version 1 says the same")
        beside = chain.bets or "table" in body or body["test_regulator"]
        need("8 rules", not chain.demo or (law.demo and not beside), "play money")
        names = [one["bet"] for one in body.get("bet_limits", [])]
        placed = {name for name in OPENING[rules.game] if name != "blind"}
        need("8 rules", "bet_limits" not in body or names, "no limit")
        need("8 rules", names == sorted(set(names)) and set(names) <= placed, "bets")
        for name, (low, high) in chain.bet_limits.items():
            least, most = LIMITS[name]
            need("8 rules", least <= low <= high <= most and not (low % rules.step or high % rules.step), name)

    def purchase(self, chain: SimpleNamespace, body: Body) -> None:
        amount, bought, before, after, number = (
            int(body[name])
            for name in ("amount_minor", "bought_minor", "balance_before_minor", "balance_after_minor", "purchase_no")
        )
        was, chain.purchase, chain.bought, chain.balance = (
            (chain.purchase, chain.bought, chain.balance),
            number,
            bought,
            after,
        )
        mine, chain.participation = chain.participation, body["participation_id"]
        need(
            "7 session",
            was[0] in (None, number - 1) and mine in (None, body["participation_id"]),
            "number, participation",
        )
        need("8 rules", not chain.law or bought <= chain.law.cap, "cap")
        need("18 balance", bought >= amount and was[1] in (None, bought - amount), "bought")
        need("18 balance", was[2] in (None, before) and after == before + amount, "balance")

    def participation_end(self, chain: SimpleNamespace, body: Body) -> None:
        need("7 session", chain.participation in (None, body["participation_id"]), "participation")
        self.session_close(chain, body)
        bought, staked, returned, paid = (
            int(body[f"{name}_minor"]) for name in ("bought", "staked", "returned", "paid_out")
        )
        known_sums = zip(
            (chain.bought, chain.staked, chain.returned, chain.balance), (bought, staked, returned, paid), strict=True
        )
        need("18 balance", all(ours in (None, theirs) for ours, theirs in known_sums), "sums")
        need("18 balance", bought - staked + returned == paid, "identity")

    def session_close(self, chain: SimpleNamespace, body: Body) -> None:
        need("7 session", chain.stage in (None, int(body["rounds"])), "rounds")
        need("18 balance", not chain.bets or not chain.balance, "not credited")

    def opening(self, chain: SimpleNamespace, body: Body, seat: SimpleNamespace) -> None:
        deal, rules, start, code = body["deal"], seat.rules, body["deal"]["start_time"], body["deal"]["game_code"]
        need("7 session", chain.stage in (None, int(body["round_no"]) - 1), "stage")
        need("7 session", not chain.bets or chain.paid_for in ("", deal["round_id"]), "paid for")
        need("7 session", not chain.free or chain.free["round_id"] == deal["round_id"], "paid for by a free bet")
        need("8 rules", rules and chain.rules in (None, deal["ruleset"]), "ruleset")
        self.within_limits(chain, start, seat)
        need(
            "9 deal",
            deal["instance"] == body["instance"] and deal["shuffle"] == "fisher-yates-52/v1",
            "instance, shuffle",
        )
        need("9 deal", start <= body["time"] and code.split("-")[0] == f"#{start[11:19]}", "start, code")
        need("9 deal", start[:19] != chain.start[:19] or code not in chain.codes, "code")
        seats, number, sid = int(deal["seats"]), int(body["seat"]["seat_no"]), body["seat"]["session_id"]
        need(
            "9 deal",
            chain.table in (None, deal["table"]) and seats <= (rules.seats if deal["table"] else 1),
            "table, seats",
        )
        leaf, path = sha(b"\0", canonical(body["seat"])), [bytes.fromhex(node) for node in body["path"]]
        need(
            "9 deal",
            sid == body["session_id"] and path_root(leaf, number - 1, seats, path).hex() == deal["seats_root"],
            "seat",
        )
        self.stakes(chain, body, seat, LIMITS)

    def within_limits(self, chain: SimpleNamespace, start: str, seat: SimpleNamespace) -> None:
        """The interval of the jurisdiction and the limits of the session; how much is left for decisions."""
        need("7 session", start >= chain.start, "start")
        passed = datetime.fromisoformat(start) - datetime.fromisoformat(chain.start or start)
        need(
            "8 rules",
            not chain.start or not chain.law or passed.total_seconds() * 1000 >= chain.law.interval_ms,
            "interval",
        )
        need("8 rules", not chain.free or start < chain.free.get("expiry_time", ""), "expired")
        granted = sum(stake for bet, stake in seat.bets if chain.free and bet in ("ante", "blind"))
        staked, left = sum(stake for _, stake in seat.bets) - granted, [seat.before - granted]
        if chain.bets:
            left[0] += 10**18
        passed = datetime.fromisoformat(start) - datetime.fromisoformat(chain.opened or start)
        duration = chain.limits.get("duration_ms")
        need("8 rules", not duration or passed < timedelta(milliseconds=int(duration)), "duration")
        if chain.staked is not None and "loss_minor" in chain.limits:
            left.append(int(chain.limits["loss_minor"]) - chain.staked + chain.returned)
        if chain.staked is not None and "stake_minor" in chain.limits:
            left.append(int(chain.limits["stake_minor"]) - chain.staked)
        need("8 rules", all(staked <= limit for limit in left[1:]), "limits")
        seat.funds = min(left) - staked

    def stakes(self, chain: SimpleNamespace, body: Body, seat: SimpleNamespace, limits: Any) -> None:
        """Bets and balance of an opening."""
        rules = seat.rules
        bets, names = dict(seat.bets), [name for name, _ in seat.bets]
        due = [name for name in OPENING[rules.game] if name in names or name in OPENING[rules.game][:-1]]
        need("10 stakes", names == due and bets.get("blind", bets["ante"]) == bets["ante"], "bets")
        for name in names:
            low, high = limits["ante" if name == "blind" else name]
            need("10 stakes", low <= bets[name] <= high and bets[name] % rules.step == 0, name)
            low, high = chain.bet_limits.get(name, (low, high))
            need("10 stakes", low <= bets[name] <= high, name)
        paid = int(chain.free["amount_minor"]) if chain.free else bets["ante"] + bets.get("blind", 0)
        need("18 balance", paid == bets["ante"] + bets.get("blind", 0), "free bet")
        before, after = int(body["balance_before_minor"]), int(body["balance_after_minor"])
        need("18 balance", chain.balance in (None, before) and after == before - sum(bets.values()), "balance")

    def join(self, body: Body, round_id: str) -> None:
        deal, number, new = body["deal"], int(body["seat"]["seat_no"]), True
        if round_id not in self.rounds:
            new = round_id not in self.seen
            self.seen.add(round_id)
            self.rounds[round_id] = SimpleNamespace(
                deal=deal, draw=(deal["instance"], deal["draw_no"]), leaves={}, open=0, left=False
            )
        round_ = self.rounds[round_id]
        round_.open += 1
        need("9 deal", new and round_.deal == deal and number not in round_.leaves, "round")
        round_.leaves[number] = sha(b"\0", canonical(body["seat"]))
        if len(round_.leaves) == int(deal["seats"]):
            root = tree_root([round_.leaves[key] for key in sorted(round_.leaves)])
            need("9 deal", len(round_.leaves) == 1 or root.hex() == deal["seats_root"], "root")

    def answer(self, seat: SimpleNamespace) -> None:
        if hasattr(seat, "table"):
            seat.table.unanswered.discard(seat.hash) if seat.table else None
            return
        round_id, round_ = seat.round_id, self.rounds[seat.round_id]
        round_.open -= 1
        if not round_.open and len(round_.leaves) >= int(round_.deal["seats"]) and not round_.left:
            self.done.add(round_id)
            del self.rounds[round_id]

    def abandon(self, seat: SimpleNamespace, outside: bool) -> None:
        round_ = seat.table if hasattr(seat, "table") else self.rounds[seat.round_id]
        if outside:
            if round_:
                round_.left = True
        else:
            self.emit(FaultError("11 opening", "no final"), seat.round_id)
            self.answer(seat)

    def final(self, body: Body, seat: SimpleNamespace | None) -> None:
        need("11 opening", seat and seat.sound, "opening")
        opened, deal, rules = seat.body, seat.body["deal"], seat.rules  # type: ignore[union-attr]
        ours = (seat.hash, seat.round_id, opened["seat"]["seat_no"], opened["round_no"])  # type: ignore[union-attr]
        need(
            "11 opening",
            (body["opening"], body["round_id"], body["seat_no"], body["round_no"]) == ours,
            "another opening",
        )
        void, done = body.get("void", {}), body["status"] == "settled"
        hidden = not done and void.get("reason") == "DECK_UNRECOVERABLE"
        due = (
            REVEALED | {"outcome", "settlement"} if done else {"void"} if hidden else REVEALED | {"void", "settlement"}
        )
        barred = {"void"} if done else {"outcome"} | (REVEALED if hidden else set())
        need("11 opening", due <= body.keys() and not barred & body.keys(), "fields")
        deck, commitment = FACES, bytes.fromhex(opened["commitment"])
        if "transcript" in body:
            salt, drawn = bytes.fromhex(body["salt"]), bytes.fromhex(body["transcript"])
            length = len(drawn).to_bytes(2, "big")
            need(
                "12 commitment",
                sha(b"rgs/commitment/v1\0", sha(canonical(deal)), salt, length, drawn) == commitment,
                "hash",
            )
            deck = shuffled(drawn)
            need("13 transcript", deck == body["deck"], "deck")
        cards = dealt(rules, deck, int(deal["seats"]), int(body["seat_no"]))
        need("14 cards", body.get("cards", cards) == cards, "cards")
        bets, phase, folded = self.decisions(body, seat, commitment, done)  # type: ignore[arg-type]
        if done:
            outcome, rows = settled(rules, cards, bets, folded)
            need("16 hands", outcome == body["outcome"], "outcome")
            need("17 settlement", rows == body["settlement"], "rows")
        else:
            self.approved(body)
            pushes = pushed(bets)
            need("19 void", body.get("settlement", pushes) == pushes, "pushes")
            need(
                "19 void",
                all((name in void) == ("deck" in body) for name in ("would_have_been", "would_have_outcome")),
                "claims",
            )
            if "deck" in body:
                folded = folded or phase != ""  # every default ends in a fold
                outcome, rows = settled(rules, cards, bets, folded)
                need("16 hands", outcome == void["would_have_outcome"], "outcome")
                need("17 settlement", rows == void["would_have_been"], "rows")
        self.sums(body, seat, bets)  # type: ignore[arg-type]
        if not done:
            self.hidden += hidden
            self.events_of(body, void, opened["time"])

    def decisions(
        self, body: Body, seat: SimpleNamespace, start: bytes, done: bool
    ) -> tuple[list[tuple[str, int]], str, bool]:
        """All bets, the phase that was reached, whether the player folded."""
        rules, bets, folded = seat.rules, list(seat.bets), False
        phase, funds, time = next(iter(PHASES[rules.game])), seat.funds, seat.body["time"]
        running = sha(b"rgs/actions/v1\0", start)
        for action in body["actions"]:
            options, name = PHASES[rules.game].get(phase, {}), action["action"]
            need("15 actions", action["phase"] == phase and name in options, "phase, action")
            cost, default = options[name][0] * bets[0][1], next(iter(options))
            need("15 actions", action["amount_minor"] == str(cost) and cost <= funds, "price")
            need(
                "15 actions",
                time <= action["time"] <= body["time"] and (action["by"] == "player" or name == default),
                "time, by",
            )
            bets += [("play" if rules.game == "uth" else "call", cost)] if cost else []
            sender = seat.operator if action["by"] == "player" else "rgs"
            need("15 actions", sender in (None, action["party"]), "party")
            funds, time, phase, folded = funds - cost, action["time"], options[name][1], folded or name == "fold"
            running = sha(b"rgs/actions/v1\0", running, canonical(action))
        need("15 actions", running.hex() == body["actions_hash"] and (phase == "" or not done), "hash, showdown")
        return bets, phase, folded

    def sums(self, body: Body, seat: SimpleNamespace, bets: list[tuple[str, int]]) -> None:
        before, staked, returned, after = (
            int(body[f"{name}_minor"]) for name in ("balance_before", "staked", "returned", "balance_after")
        )
        back = sum(int(row["returned_minor"]) for row in body["settlement"]) if "settlement" in body else staked
        need(
            "18 balance",
            seat.before in (None, before) and (staked, returned) == (sum(stake for _, stake in bets), back),
            "sums",
        )
        need("18 balance", after == before - staked + returned, "identity")
        need("18 balance", not seat.by_bets or staked == before, "debited")

    def approved(self, body: Body) -> None:
        parties = [approval["party"] for approval in body["void"]["approvals"]]
        need("19 void", len(parties) == 2 and parties[0] != parties[1], "approvals")
        need("19 void", all(one["time"] <= body["time"] for one in body["void"]["approvals"]), "approved later")

    def events_of(self, body: Body, void: Body, opened: str) -> None:
        reported, (one, two) = self.malfunctions.get(void["malfunction"]), void["approvals"]
        need("19 void", reported or not self.whole, "no malfunction")
        if not reported:
            return
        need("19 void", reported.get("round_id") == body["round_id"], "the malfunction of another round")
        sid = body.get("session_id", "")
        need("19 void", reported.get("session_id", sid) == sid, "of another session")
        need("19 void", self.paused.get(body["round_id"]) == void["malfunction"], "resumed")
        need("19 void", opened <= reported["time"] <= one["time"] <= two["time"], "approved too early")
        windows = body.get("windows", [])
        need("19 void", all(window["close_time"] <= reported["time"] for window in windows), "a window while paused")
        actions = body.get("actions", [])
        need("19 void", all(action["time"] <= reported["time"] for action in actions), "decided while paused")
        if self.whole:
            proposed = (one["party"], void["reason"], one["time"])
            requested = {(*proposed, ""), (*proposed, sid)} & set(self.proposed[body["round_id"]])
            need("19 void", requested, "not proposed")
            self.approvals += [(each["party"], each["time"], body["round_id"]) for each in (one, two)]

    # --- rounds of tables (formats 4, 5, 10; verify 3, A table) ---

    def table_round(self, reported: SimpleNamespace) -> None:
        body = reported.body
        rules, law = known(RULESETS, body["ruleset"]), known(JURISDICTIONS, body["jurisdiction"])
        table = self.tables.setdefault(
            body["table"], SimpleNamespace(number=0, final="0" * 64, ended="", round=None, second="", codes=set())
        )
        before, was = table.round, table.number
        final, ended, second, codes = table.final, table.ended, table.second, table.codes
        if before and self.whole:
            self.passes(before.body["round_id"], self.table_round_over, before)
        if before:
            before.followed = True
        if before and (self.whole or not before.unanswered):
            self.table_rounds.pop(before.hash, None)
            self.deals.pop(before.deal_hash, None)
        fits_deck = rules and int(body["hands"]) <= (1 if rules.shared else rules.seats)
        round_ = SimpleNamespace(
            hash=reported.hash, body=body, rules=rules if fits_deck else None, table=table, seats=None, salt=b"",
            dealt=None, deal_hash="", final=None, final_hash="", deck=None, leaves={}, unanswered=set(), left=False,
            latest="", followed=False, boxes=set(),
        )  # fmt: skip
        table.round, table.number = round_, max(was, int(body["table_round_no"]))
        self.table_rounds[reported.hash] = round_
        opened, closed, code = body["betting_open_time"], body["betting_close_time"], body["game_code"]
        table.codes = (codes if second == opened[:19] else set()) | {code}
        table.second = opened[:19]
        self.all_rounds.append(round_)
        number = int(body["table_round_no"])
        need("24 table", number > was, "a number twice")
        need("24 table", number == was + 1 or not self.whole, "a number is missing")
        if number == was + 1:
            over = not before or before.final
            need("24 table", over or not self.whole, "the round before has not ended")
            need("24 table", not over or body["previous"] == final, "previous")
        need("24 table", opened >= ended, "betting opens before the final of the round before")
        if not rules or not law:
            raise FaultError("8 rules", "ruleset, jurisdiction")
        need("8 rules", rules.at_table, "no table game")
        need("8 rules", law.tables, "no tables")
        need("8 rules", not body["early_close"] or law.early_close, "early close")
        placed = sorted(name for name in OPENING[rules.game] if name != "blind")
        need("10 stakes", [limit["bet"] for limit in body["limits"]] == placed, "limits of which bets")
        for limit in body["limits"]:
            low, high = LIMITS[limit["bet"]]
            need("10 stakes", low <= int(limit["min_minor"]) <= int(limit["max_minor"]) <= high, "limits")
        hands, leaves = int(body["hands"]), int(body["leaves"])
        need("25 table deal", hands == 1 if rules.shared else hands <= rules.seats, "hands")
        need("25 table deal", 64 <= leaves <= MOST_SEATS and not leaves & (leaves - 1), "leaves")
        need("25 table deal", code.split("-")[0] == f"#{opened[11:19]}", "code")
        need("25 table deal", second != opened[:19] or code not in codes, "code twice")
        self.lasted(opened, closed, int(body["betting_ms"]), int(body["betting_ms"]))
        need("27 early", body["time"] >= closed, "before betting closed")

    def table_round_over(self, round_: SimpleNamespace) -> None:
        need("28 seats", round_.final, "the round has no end")
        need("28 seats", not round_.unanswered, "a seat has no final")

    def lasted(self, opened: str, closed: str, due_ms: int, least_ms: int) -> None:
        passed = datetime.fromisoformat(closed) - datetime.fromisoformat(opened)
        lasted = passed // timedelta(milliseconds=1)
        need("26 windows", least_ms <= lasted <= due_ms + LATE_MS, "length")

    def round_of(self, named: str, body: Body) -> SimpleNamespace:
        round_ = self.table_rounds.get(named)
        if round_ is None or round_.body["round_id"] != body["round_id"]:
            raise FaultError("24 table", "its table_round is not here, or of another round")
        return round_

    def table_seats(self, reported: SimpleNamespace) -> None:
        body = reported.body
        round_ = self.round_of(body["table_round"], body)
        need("28 seats", round_.seats is None and not round_.dealt and not round_.final, "counted twice or late")
        seats = int(body["seats"])
        round_.seats, round_.salt = seats, bytes.fromhex(body["salt"])
        rules, hands = round_.rules, int(round_.body["hands"])
        most = rules.seats if rules and not rules.shared else MOST_SEATS
        need("28 seats", seats <= most and leaves_for(seats) == int(round_.body["leaves"]), "seats and leaves")
        need("28 seats", not rules or rules.shared or seats == hands, "seats and hands")

    def is_new(self, round_id: str) -> None:
        need("25 table deal", round_id not in self.seen, "the round id was dealt before")
        self.seen.add(round_id)

    def table_deal(self, reported: SimpleNamespace) -> None:
        body, deal = reported.body, reported.body["deal"]
        round_ = self.round_of(deal["table_round"], body)
        need("25 table deal", not round_.dealt and not round_.final, "dealt twice, or ended")
        round_.dealt, round_.deal_hash = body, reported.hash
        self.deals[reported.hash] = round_
        need("25 table deal", deal["instance"] == body["instance"], "instance")
        need("25 table deal", deal["shuffle"] == "fisher-yates-52/v1", "shuffle")
        need("28 seats", round_.seats is not None or not self.whole, "seats are not counted")
        need("27 early", body["time"] >= round_.body["betting_close_time"], "before betting closed")

    def table_final(self, reported: SimpleNamespace) -> None:
        body = reported.body
        round_ = self.round_of(body["table_round"], body)
        need("24 table", not round_.final, "ended twice")
        rules, dealt_, table = round_.rules, round_.dealt, round_.table
        round_.final, round_.final_hash = body, reported.hash
        if table.round is round_:
            table.final, table.ended = reported.hash, body["time"]
        done, void = body["status"] == "settled", body.get("void", {})
        shown = dealt_ and (done or void.get("reason") != "DECK_UNRECOVERABLE")
        due = {"deal"} if dealt_ else set()
        due |= (REVEALED | {"hands"} if shown else set()) | (set() if done else {"void"})
        held = body.keys() & (REVEALED | {"deal", "hands", "void"})
        need("11 opening", dealt_ or not done, "settled and not dealt")
        need("11 opening", held == due and body.get("deal", "") == round_.deal_hash, "fields, deal")
        if shown and rules:
            salt, drawn = bytes.fromhex(body["salt"]), bytes.fromhex(body["transcript"])
            bound = sha(canonical(dealt_["deal"])), salt, len(drawn).to_bytes(2, "big"), drawn
            need("12 commitment", sha(b"rgs/commitment/v1\0", *bound).hex() == dealt_["commitment"], "hash")
            deck = shuffled(drawn)
            need("13 transcript", deck == body["deck"], "deck")
            cards = dealt(rules, deck, int(round_.body["hands"]), 1)
            hands, _ = settled(rules, cards, [], False)
            seen = ("board", "burns", "dealer_cards", *(["hole_cards"] if rules.shared else []))
            need("14 cards", body["cards"] == {name: cards[name] for name in seen}, "cards")
            theirs = {"dealer_hand", "dealer_qualifies"} | ({"player_hand", "flop_hand"} if rules.shared else set())
            need("16 hands", body["hands"] == {name: hands[name] for name in theirs & hands.keys()}, "hands")
            round_.deck = deck
        self.windows(body, round_, done)
        self.all_seats(round_)
        if not done:
            self.approved(body)
            opened = dealt_["time"] if dealt_ else round_.body["betting_open_time"]
            self.events_of(body, void, opened)

    def all_seats(self, round_: SimpleNamespace) -> None:
        if round_.seats is None:
            need("28 seats", round_.dealt or not self.whole, "seats are not counted")
        elif round_.dealt:
            seats, leaves = round_.seats, round_.leaves
            need("28 seats", len(leaves) == seats or not self.whole, "a seat is missing")
            if len(leaves) == seats:
                behind = [padding(round_.salt, place) for place in range(seats + 1, leaves_for(seats) + 1)]
                root = tree_root([*(leaves[place] for place in sorted(leaves)), *behind])
                need("28 seats", root.hex() == round_.body["seats_root"], "root")

    def windows(self, body: Body, round_: SimpleNamespace, done: bool) -> None:
        phases = list(PHASES[round_.rules.game]) if round_.rules else []
        rows, before = body["windows"], round_.dealt["time"] if round_.dealt else ""
        need("26 windows", round_.dealt or not rows, "windows without a deal")
        place = 0
        for row in rows:
            need("26 windows", not round_.rules or phases[place : place + 1] == [row["phase"]], "order of phases")
            need("26 windows", before <= row["open_time"] <= row["close_time"], "order of times")
            need("26 windows", row["end"] != "decided" or round_.body["early_close"], "decided")
            due_ms = int(round_.body["decision_ms"])
            self.lasted(row["open_time"], row["close_time"], due_ms, due_ms if row["end"] == "time" else 0)
            before, place = row["close_time"], place + (row["end"] != "paused")
        need("26 windows", not done or not phases or place == len(phases), "a phase has no last window")
        need("27 early", body["time"] >= before, "before the last window closed, or before the deal")
        need("27 early", not rows or round_.latest <= rows[0]["open_time"], "a seat opened after the first window")

    def seat_opening(self, chain: SimpleNamespace, body: Body, seat: SimpleNamespace) -> None:
        round_ = seat.table
        need("7 session", chain.stage in (None, int(body["round_no"]) - 1), "stage")
        if round_ is None or round_.body["round_id"] != body["round_id"]:
            raise FaultError("25 table deal", "its table_deal is not here, or of another round")
        table, rules = round_.body, round_.rules
        need("25 table deal", rules, "a ruleset that is not known, or too many hands")
        need("27 early", body["time"] >= round_.dealt["time"], "before the deal")
        need("8 rules", chain.rules in (None, table["ruleset"]), "ruleset")
        need("8 rules", chain.jurisdiction in (None, table["jurisdiction"]), "jurisdiction")
        self.within_limits(chain, round_.dealt["time"], seat)
        number, hands = int(body["seat"]["seat_no"]), int(table["hands"])
        need("9 deal", chain.table in (None, table["table"]), "table")
        need("9 deal", body["seat"]["session_id"] == body["session_id"], "session")
        need("9 deal", hands == 1 or number <= hands, "seat number")
        limits = {row["bet"]: (int(row["min_minor"]), int(row["max_minor"])) for row in table["limits"]}
        closer = {
            name: (max(low, limits.get(name, (low, high))[0]), min(high, limits.get(name, (low, high))[1]))
            for name, (low, high) in LIMITS.items()
        }
        self.stakes(chain, body, seat, closer)

    def take_seat(self, reported: SimpleNamespace, seat: SimpleNamespace) -> None:
        round_, body, number = seat.table, seat.body, int(seat.body["seat"]["seat_no"])
        if round_ is None:
            return
        round_.unanswered.add(seat.hash)
        need("28 seats", number not in round_.leaves, "seat number twice")
        leaf = round_.leaves[number] = sha(b"\0", canonical(body["seat"]))
        round_.latest = max(round_.latest, body["time"])
        need("28 seats", number <= (round_.seats or int(round_.body["leaves"])), "seat number")
        box, rules = int(body["seat"].get("box", "0")), round_.rules
        boxes = 0 if not rules or rules.shared else rules.seats
        need("28 seats", not rules or (1 <= box <= boxes if boxes else box == 0), "box")
        need("28 seats", box not in round_.boxes, "box twice")
        round_.boxes |= {box} - {0}
        need("28 seats", reported.path is not None or self.whole, "no path")
        if reported.path is not None:
            path, leaves = [bytes.fromhex(node) for node in reported.path], int(round_.body["leaves"])
            good = leaves <= MOST_SEATS and path_root(leaf, number - 1, leaves, path).hex() == round_.body["seats_root"]
            need("28 seats", good, "path")
        need("28 seats", not round_.final, "after the table_final")

    def seat_final(self, body: Body, seat: SimpleNamespace | None) -> None:
        round_ = getattr(seat, "table", None)
        if not seat or not round_:
            raise FaultError("11 opening", "opening")
        need("28 seats", not round_.followed, "after the next round of the table began")
        need("27 early", round_.final and body["table_final"] == round_.final_hash, "table_final")
        opened, rules, final, deck = seat.body, round_.rules, round_.final, round_.deck
        ours = (seat.hash, seat.round_id, opened["seat"]["seat_no"], opened["round_no"])
        theirs = (body["opening"], body["round_id"], body["seat_no"], body["round_no"])
        need("11 opening", seat.sound and theirs == ours, "opening, or another one")
        done, own, shown = final["status"] == "settled", not rules.shared, "deck" in final
        need("11 opening", deck or not (done or shown), "the table_final has failed a check of its cards")
        due = ({"hole_cards"} if own and shown else set()) | ({"outcome"} if done else set())
        due |= {"would_have_been", "would_have_outcome"} if shown and not done else set()
        held = body.keys() & {"hole_cards", "outcome", "would_have_been", "would_have_outcome"}
        need("11 opening", body["status"] == final["status"] and held == due, "status, fields")
        hands = int(round_.body["hands"])
        cards = dealt(rules, deck or FACES, hands, int(body["seat_no"]) if hands > 1 else 1)
        need("14 cards", not own or not shown or body["hole_cards"] == cards["hole_cards"], "cards")
        bets, phase, folded = self.decisions(body, seat, bytes.fromhex(seat.hash), done)
        self.in_windows(body, final["windows"], phase)
        need("19 void", done or body["settlement"] == pushed(bets), "pushes")
        if done or shown:
            names = ("outcome", "settlement") if done else ("would_have_outcome", "would_have_been")
            whole, rows = settled(rules, cards, bets, folded or (phase != "" and not done))
            kept = ("outcome", *(["player_hand", "flop_hand"] if own else []))
            need("16 hands", body[names[0]] == {name: whole[name] for name in kept if name in whole}, "outcome")
            need("17 settlement", body[names[1]] == rows, "rows")
        self.sums(body, seat, bets)
        self.hidden += not done and not shown

    def in_windows(self, body: Body, windows: list[Body], phase: str) -> None:
        for action in body["actions"]:
            mine = [window for window in windows if window["phase"] == action["phase"]]
            if action["by"] == "player":
                good = any(window["open_time"] <= action["time"] <= window["close_time"] for window in mine)
            else:
                last = mine[-1] if mine else {"end": ""}
                good = action["by"] == "timer" and last["end"] == "time" and last["close_time"] == action["time"]
            need("26 windows", good, "an action outside of a window")
        left = [window["end"] for window in windows if window["phase"] == phase]
        need("26 windows", not left or left[-1] != "time", "no decision in a window that ran out")

    def is_admin(self, party: str, time: str) -> bool:
        return any(since <= time <= until for since, until in self.admins[party].values())

    def finish(self) -> None:
        for sid, chain in self.sessions.items():
            ranges = self.ranges["session_id"].get(sid, [])
            wrong = chain.kind != "session_close" and chain.numbers.end_is_wrong(False, ranges)
            if wrong:
                self.emit(FaultError("22 scope", f"session {sid} ends early"))
            if chain.seat and chain.kind != "session_close":
                self.abandon(chain.seat, not wrong)
        for names, held in ((self.ranges["session_id"], self.sessions), (self.ranges["instance"], self.instances)):
            self.passes("", need, "22 scope", names.keys() <= held.keys(), "promised, and nothing is here")
        for party, time, round_id in self.approvals:
            self.passes(round_id, need, "19 void", self.is_admin(party, time), f"{party} was no admin at {time}")
        self.passes(
            "", need, "21 instance", not self.whole or self.lost.keys() <= self.instances.keys(), "lost is not here"
        )
        workers: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, one in sorted(self.instances.items(), key=lambda item: int(item[1].body["boot_no"])):
            lost = self.lost.get(name)
            self.passes("", self.ends, name, one, lost)
            mine = workers[one.body["node"], one.body["worker"]]
            self.passes("", self.boots, one.body, mine)
            mine.append(name)
        for round_id, round_ in self.rounds.items():
            self.passes(
                round_id,
                need,
                "9 deal",
                not self.whole or len(round_.leaves) >= int(round_.deal["seats"]),
                "seat missing",
            )
            self.done |= set() if round_.left else {round_id}
        for table in self.all_rounds:
            round_id = table.body["round_id"]
            if self.whole and not table.followed:
                self.passes(round_id, self.table_round_over, table)
            if table.dealt and table.final and not table.unanswered and not table.left:
                self.done.add(round_id)

    def ends(self, name: str, one: SimpleNamespace, lost: Body | None) -> None:
        need(
            "22 scope",
            not one.numbers.end_is_wrong(one.end is not None or lost, self.ranges["instance"].get(name, [])),
            name,
        )
        last, unbroken, end = one.numbers.last, one.numbers.unbroken, one.end
        if lost:
            said, end = int(lost["lost"]["last_statement_no"]), int(lost["lost"]["last_draw_no"])
            cut = not one.numbers.whole or self.ranges["instance"].get(name)
            need("21 instance", one.end is None and last <= said and (cut or last == said), "lost numbers")
            need(
                "21 instance", self.instances[lost["instance"]].body["store_epoch"] == one.body["store_epoch"], "epoch"
            )
            unbroken = unbroken and last == said
        if end is not None:
            highest = one.draws[-1][0] if one.draws else 0
            need("20 draws", highest <= end and not (unbroken and (highest, len(one.draws)) != (end, end)), "draws")

    def boots(self, body: Body, mine: list[str]) -> None:
        """`mine` are the boots of the worker before this one."""
        before, named = int(body["boot_no"]) - 1, body.get("previous_boot")
        last_no = int(self.instances[mine[-1]].body["boot_no"]) if mine else 0
        need("21 instance", not mine or last_no <= before, "boot number twice")
        need("21 instance", last_no == before or not self.whole, "a boot is missing")
        if not named:
            return need("21 instance", not mine or mine[-1] in self.lost or not self.whole, "it names no boot before")
        if named["instance"] not in self.instances:
            return need("21 instance", not self.whole, "the boot before is missing")
        former, lost = self.instances[named["instance"]], self.lost.get(named["instance"])
        is_mine = all(former.body[field] == body[field] for field in ("node", "worker"))
        need("21 instance", is_mine and int(former.body["boot_no"]) == before, "boot of another")
        last = int(lost["lost"]["last_statement_no"]) if lost else former.numbers.last
        end = int(lost["lost"]["last_draw_no"]) if lost else former.end
        said = int(named["last_statement_no"]), int(named["last_draw_no"])
        agrees = (said[0] >= last and not self.whole) if end is None else said == (last, end)
        return need("21 instance", agrees, "the boot before ended otherwise, or not at all")


def known(book: dict[tuple[str, str, str], SimpleNamespace], named: Body) -> SimpleNamespace | None:
    return book.get((named["id"], named["version"], named["sha256"]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--keys", required=True, type=Path)
    parser.add_argument("--root")
    given = parser.parse_args(arguments)
    try:
        verifier = Verifier(Keys(given.keys.read_bytes()))
    except FaultError as fault:
        sys.stdout.write(f"FAILED {' '.join(fault.args)}\n0 rounds verified, 0 failed, UNANCHORED\n")
        return 1
    for path in given.files:
        with path.open("rb") as file:
            for line in file:
                verifier.line(line)
    verifier.finish()
    anchored = given.root == verifier.keys.root
    if given.root and not anchored:
        verifier.faults.append(("3 key", "another root", ""))
    for fault_ in verifier.faults:
        sys.stdout.write(f"FAILED {': '.join(fault_)}\n")
    if verifier.hidden:
        sys.stdout.write(f"EXPOSED {verifier.hidden}\n")
    if verifier.absent:
        sys.stdout.write(f"ERASED {verifier.absent}\n")
    verified = len(verifier.done - verifier.failed)
    verdict = "ANCHORED" if anchored else "UNANCHORED"
    sys.stdout.write(f"{verified} rounds verified, {len(verifier.failed)} failed, {verdict}\n")
    return 1 if verifier.faults or not verified else 0


if __name__ == "__main__":
    sys.exit(main())
