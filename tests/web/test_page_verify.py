"""verify.html from a disk: an honest receipt, planted faults, files that are none, statements that nobody knows."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from rgs.core.tlog.note import COSIGNATURE, add_signatures, cosign, format_vkey, note_key
from rgs.core.tlog.proofs import format_log_proof, parse_log_proof
from tests.support.records.granted import free_bets
from tests.support.service.harness import NODE_KEY
from tests.web.page_browser import DIST, RULES, SIZES, until, visit
from tests.web.qr_codes import CAMERA

Receipt = dict[str, Any]


@dataclass(frozen=True)
class Played:
    """A round that was played, and the log's verifier key."""

    receipt: Receipt
    vkey: str


@pytest.fixture(scope="module")
def played(browser: Any, page_whole: Any) -> Played:
    """The receipt of a round that was played with trips, once the log has both of its statements."""
    visitor = visit(browser, page_whole.origin).sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.bet("trips", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    visitor.page.wait_for_selector("[data-proof=first_use]")
    [line] = visitor.api("/api/rounds")["rounds"]
    path = f"/api/receipts/{line['round_id']}?session_id={line['session_id']}"
    until(visitor.page, "async (path) => 'final' in (await (await fetch(path)).json()).log_proofs", path)
    found: Receipt = visitor.api(path)
    leaf = hashlib.sha256(b"\x00" + base64.b64decode(found["record"]["final"])).hexdigest()
    vkey = visitor.api(f"/api/proofs/{leaf}")["vkey"]
    visitor.page.context.close()
    return Played(found, vkey)


@pytest.fixture(scope="module")
def receipt(played: Played) -> Receipt:
    """The receipt alone."""
    return played.receipt


@pytest.fixture
def verify(browser: Any, tmp_path: Path) -> Any:
    """Gives a file to verify.html, opened from the disk; the page, with its verdict shown."""
    page = browser.new_context(offline=True, locale="en-GB").new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto((DIST / "verify.html").as_uri())

    numbers = itertools.count()

    def give(content: bytes | Receipt, name: str = "receipt.json") -> Any:
        # Each in a folder of its own: a browser tells of no change where the path is the same.
        path = tmp_path / str(next(numbers)) / name
        path.parent.mkdir()
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        page.set_input_files("#file", path)
        page.wait_for_selector("[data-verdict]")
        return page

    yield give
    assert faults == []
    page.context.close()


def verdict(page: Any) -> str:
    return str(page.locator("[data-verdict]").get_attribute("data-verdict"))


def test_an_honest_receipt_verifies_and_says_whose_keys_are_not_confirmed(verify: Any, receipt: Receipt) -> None:
    page = verify(receipt)
    assert verdict(page) == "passed"
    shown = page.locator("[data-unanchored]").inner_text()
    root = re.search(r"[0-9a-f]{64}", shown)
    assert root
    page.fill("#root", root[0])
    page.keyboard.press("Tab")
    page.wait_for_selector("[data-unanchored]", state="detached")
    assert verdict(page) == "passed"
    steps = page.locator("[data-step]").count()
    assert steps >= 12
    page.locator("[data-step=commitment] summary").click()
    assert re.search(r"[0-9a-f]{64}", page.locator("[data-step=commitment]").inner_text()), "a step shows its bytes"


def payload(receipt: Receipt, part: str, change: Callable[[dict[str, Any]], None]) -> Receipt:
    """The receipt with another payload in an envelope, under the old signature."""
    changed: Receipt = json.loads(json.dumps(receipt))
    envelope = json.loads(base64.b64decode(changed["record"][part]))
    body = json.loads(base64.b64decode(envelope["payload"]))
    change(body)
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    old = envelope["payload"]
    envelope["payload"] = base64.b64encode(canonical).decode()
    whole = base64.b64decode(changed["record"][part]).decode().replace(old, envelope["payload"])
    changed["record"][part] = base64.b64encode(whole.encode()).decode()
    return changed


def without(receipt: Receipt, *path: str) -> Receipt:
    changed: Receipt = json.loads(json.dumps(receipt))
    at = changed
    for name in path[:-1]:
        at = at[name]
    at.pop(path[-1])
    return changed


def flipped(receipt: Receipt, part: str) -> Receipt:
    """One bit of the signature is another."""
    changed: Receipt = json.loads(json.dumps(receipt))
    text = base64.b64decode(changed["record"][part]).decode()
    envelope = json.loads(text)
    old = envelope["signatures"][0]["sig"]
    raw = bytearray(base64.b64decode(old))
    raw[0] ^= 1
    changed["record"][part] = base64.b64encode(
        text.replace(old, base64.b64encode(bytes(raw)).decode()).encode()
    ).decode()
    return changed


PLANTED: Final[dict[str, Callable[[Receipt], Receipt]]] = {
    "a return that is higher": lambda one: payload(one, "final", lambda body: body.update(returned_minor="999999")),
    "another deck": lambda one: payload(one, "final", lambda body: body["deck"].reverse()),
    "another card": lambda one: payload(one, "final", lambda body: body["cards"]["dealer_cards"].reverse()),
    "another salt": lambda one: payload(one, "final", lambda body: body.update(salt="0" * 64)),
    "another stake": lambda one: payload(one, "opening", lambda body: body.update(balance_before_minor="1")),
    "a broken signature": lambda one: flipped(one, "final"),
    "no key of the instance": lambda one: without(one, "instances") | {"instances": {}},
    "an opening under the final's name": lambda one: {
        **one,
        "record": {**one["record"], "final": one["record"]["opening"]},
    },
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(verify: Any, receipt: Receipt, fault: str) -> None:
    page = verify(PLANTED[fault](receipt))
    expected = "refused" if fault.startswith("an opening") else "failed"
    assert verdict(page) == expected, page.inner_text("#result")


def test_another_root_fails(verify: Any, receipt: Receipt) -> None:
    page = verify(receipt)
    page.fill("#root", "ab" * 32)
    page.keyboard.press("Tab")
    page.wait_for_selector("[data-verdict=failed]")


def test_a_round_without_its_end_is_open(verify: Any, receipt: Receipt) -> None:
    """A proof of the final alone leads to no statement of the file, and fails."""
    open_ = without(receipt, "record", "final")
    assert verdict(verify(without(open_, "log_proofs", "final"))) == "open"
    assert verdict(verify(open_)) == "failed"


def test_no_verdict_stays_under_another_file(verify: Any, receipt: Receipt) -> None:
    """Whoever opens the list of files again gives the file before up, and its verdict."""
    page = verify(receipt)
    assert verdict(page) == "passed"
    with page.expect_file_chooser():
        page.click("#file")
    assert page.evaluate("document.getElementById('file').files.length") == 0
    page.evaluate("document.getElementById('file').dispatchEvent(new Event('cancel'))")
    page.wait_for_selector("[data-verdict]", state="detached")


def test_a_statement_of_an_unknown_kind_is_refused_in_words(verify: Any, receipt: Receipt) -> None:
    text = (
        base64.b64decode(receipt["record"]["final"])
        .decode()
        .replace("vnd.rgs.round-final.v1", "vnd.rgs.round-final.v9")
    )
    page = verify({**receipt, "record": {**receipt["record"], "final": base64.b64encode(text.encode()).decode()}})
    assert verdict(page) == "refused"
    assert "does not know" in page.inner_text("#result")
    assert "round-final.v9" in page.inner_text("#result")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"PK\x03\x04 not a zip", b'{"format":"rgs/page-receipt/v2"}']
)
def test_what_is_no_receipt_is_refused_in_words(verify: Any, content: bytes) -> None:
    page = verify(content)
    assert verdict(page) == "refused"
    assert "no receipt" in page.inner_text("#result")


# --- the log ---


def log_state(page: Any) -> str:
    return str(page.locator("[data-log]").get_attribute("data-log"))


def test_inclusion_is_recomputed_and_nobody_has_vouched_for_the_checkpoint(verify: Any, receipt: Receipt) -> None:
    assert {"opening", "final"} <= set(receipt["log_proofs"]), "the fixture waits for the log"
    page = verify(receipt)
    assert verdict(page) == "passed"
    assert log_state(page) == "unpinned"
    page.locator("[data-step=log] summary").click()
    assert "checkpoint" in page.locator("[data-step=log]").inner_text()


def test_a_receipt_without_a_proof_says_so(verify: Any, receipt: Receipt) -> None:
    page = verify(without(receipt, "log_proofs"))
    assert verdict(page) == "passed"
    assert log_state(page) == "none"


@pytest.mark.parametrize("fault", ["another place", "another hash", "another size", "no proof at all"])
def test_a_proof_that_leads_elsewhere_fails(verify: Any, receipt: Receipt, fault: str) -> None:
    proof = receipt["log_proofs"]["final"]
    index = re.search(r"^index (\d+)$", proof, re.MULTILINE)
    assert index
    if fault == "another place":
        proof = proof.replace(index[0], f"index {int(index[1]) ^ 1}")
    elif fault == "another hash":
        lines = proof.split("\n")
        at = lines.index(index[0]) + 1
        lines[at] = base64.b64encode(bytes(32)).decode()
        proof = "\n".join(lines)
    elif fault == "another size":
        head, _, note = proof.partition("\n\n")
        lines = note.split("\n")
        lines[1] = str(int(lines[1]) * 2 + 1)
        proof = head + "\n\n" + "\n".join(lines)
    else:
        proof = "nonsense"
    page = verify({**receipt, "log_proofs": {**receipt["log_proofs"], "final": proof}})
    assert verdict(page) == "failed", page.inner_text("#result")
    assert log_state(page) == "failed"


def test_a_policy_decides_whether_the_checkpoint_counts(verify: Any, played: Played) -> None:
    """The development log has no witness: here one cosigns the checkpoints of the receipt, as a stranger's would."""
    receipt, vkey = played.receipt, played.vkey
    witness = format_vkey(note_key("witness.example", COSIGNATURE, NODE_KEY))
    proofs = {name: cosigned(text) for name, text in receipt["log_proofs"].items()}
    page = verify({**receipt, "log_proofs": proofs})
    assert log_state(page) == "unpinned"
    page.locator("details", has=page.locator("#policy")).locator("summary").click()
    trusted = f"log {vkey}\nwitness w {witness}\nquorum w\n"

    def under(policy: str, state: str) -> str:
        page.fill("#policy", policy)
        page.keyboard.press("Tab")
        page.wait_for_selector(f"[data-log={state}]")
        return verdict(page)

    assert under(trusted, "ok") == "passed"
    assert "witness.example" in page.locator("[data-step=log]").text_content() or "w " in page.inner_text("#result")
    assert under(f"# self-witness w\n{trusted}", "self") == "passed"
    other = vkey.replace(vkey.partition("+")[0], "other.example", 1)
    unknown = trusted.replace("quorum w", "quorum v")
    for wrong in (f"log {vkey}\nquorum none\n", "nonsense\n", trusted.replace(vkey, other), unknown):
        assert under(wrong, "failed") == "failed", wrong
    assert under("", "unpinned") == "passed"
    assert under(trusted, "ok") == "passed"
    page.set_input_files("#file", {"name": "r.json", "mimeType": "text/plain", "buffer": json.dumps(receipt).encode()})
    page.wait_for_selector("[data-log=failed]")
    assert "quorum" in page.inner_text("#result"), "without the witness's line the quorum is not met"


def cosigned(text: str) -> str:
    """The proof with a witness's line under its checkpoint."""
    proof = parse_log_proof(text.encode())
    line = cosign(proof.checkpoint.text, "witness.example", NODE_KEY, 1_800_000_000)
    return format_log_proof(replace(proof, checkpoint=add_signatures(proof.checkpoint, [line]))).decode()


# --- the root by a QR code ---


def test_the_root_is_read_from_a_picture(verify: Any, receipt: Receipt, qr: Any, tmp_path: Path) -> None:
    page = verify(receipt)
    shown = page.locator("[data-unanchored]").inner_text()
    root = re.search(r"[0-9a-f]{64}", shown)
    assert root
    picture = tmp_path / "root.gif"
    picture.write_bytes(qr("https://example.org/not-a-root", "gif"))
    page.set_input_files("#scan-image", picture)
    page.wait_for_selector("#scan-says:has-text('https://example.org/not-a-root')")
    assert page.input_value("#root") == ""
    picture.write_bytes(b"no picture")
    page.set_input_files("#scan-image", picture)
    page.wait_for_selector("#scan-says:has-text('no QR code')")
    colons = ":".join(root[0][at : at + 2].upper() for at in range(0, 64, 2))
    picture.write_bytes(qr(colons, "gif"))
    page.set_input_files("#scan-image", picture)
    page.wait_for_selector("[data-unanchored]", state="detached")
    assert page.input_value("#root") == root[0]
    assert verdict(page) == "passed"


def test_the_root_is_read_by_the_camera_and_another_one_fails(verify: Any, receipt: Receipt, qr: Any) -> None:
    page = verify(receipt)
    rows = qr("ab" * 32, "raw")
    page.evaluate(CAMERA, [rows, len(rows)])
    page.click("#scan")
    page.wait_for_selector("[data-verdict=failed]")
    assert page.input_value("#root") == "ab" * 32
    assert page.locator("video").is_hidden(), "the camera is off again"


def test_without_a_camera_it_says_what_else_can_be_done(verify: Any, receipt: Receipt) -> None:
    page = verify(receipt)
    page.click("#scan")
    page.wait_for_selector("#scan-says:has-text('type the root')")
    assert page.locator("video").is_hidden()


# --- a free bet, and play money ---


@pytest.mark.parametrize(("given", "state"), [(2, "✓"), (1, "\u2013"), (0, "")])
def test_a_receipt_with_the_statements_of_a_free_bet_shows_what_the_campaign_paid(
    verify: Any, given: int, state: str
) -> None:
    page = verify(free_receipt(given))
    assert verdict(page) == "passed", page.inner_text("#result")
    step = page.locator("[data-step=free_bet]")
    assert step.count() == (1 if state else 0)
    if state:
        assert step.locator("summary").inner_text().startswith(f"{state} The free bet")


def test_a_free_bet_that_was_changed_fails(verify: Any) -> None:
    changed = free_receipt(2)
    envelope = json.loads(base64.b64decode(changed["record"]["free_bets"][0]))
    body = json.loads(base64.b64decode(envelope["payload"]))
    body["amount_minor"] = "2"
    envelope["payload"] = base64.b64encode(canonical(body)).decode()
    changed["record"]["free_bets"][0] = base64.b64encode(canonical(envelope)).decode()
    assert verdict(verify(changed)) == "failed"


def canonical(body: object) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def free_receipt(links: int) -> Receipt:
    """The receipt of a round that a campaign paid for, as the platform makes it."""
    factory = free_bets()
    lines = [json.loads(line)["envelope"] for line in factory.export().splitlines()]
    bodies = [json.loads(base64.b64decode(one["payload"])) for one in lines]

    def of(kind: str, at: int = 0) -> str:
        found = [envelope for envelope, body in zip(lines, bodies, strict=True) if body["kind"] == kind]
        return base64.b64encode(canonical(found[at])).decode()

    return {
        "format": "rgs/page-receipt/v1",
        "record": {
            "opening": of("round_opening"),
            "final": of("round_final"),
            "free_bets": [of("free_bet", 0), of("free_bet", 1)][:links],
        },
        "keys": [base64.b64encode(one).decode() for one in factory.bundle],
        "instances": {"one": of("instance_start")},
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "it-IT", "de-CH"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_verify_html_is_accessible_and_no_wider_than_the_window(
    browser: Any, receipt: Receipt, tmp_path: Path, size: str, locale: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - not where the browser is missing

    context = browser.new_context(
        offline=True, locale=locale, color_scheme=scheme, viewport=SIZES[size], bypass_csp=True
    )
    page = context.new_page()
    page.goto((DIST / "verify.html").as_uri())
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))
    page.set_input_files("#file", file)
    page.wait_for_selector("[data-verdict=passed]")
    page.locator("details", has=page.locator("#policy")).locator("summary").click()
    page.locator("[data-step=log] summary").click()
    report = Axe().run(page, options={"runOnly": {"type": "tag", "values": list(RULES)}})
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in report.response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.evaluate("document.documentElement.lang") == locale[:2]
    context.close()
