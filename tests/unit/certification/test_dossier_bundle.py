"""A bundle is its files, their hashes and a signature: every changed byte is seen, and whose key it is said plainly."""

from __future__ import annotations

import base64
import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest

from certification.__main__ import main
from certification.dossier import bundle
from rgs.core.errors import FormatError, InvalidFieldError, VerificationError
from rgs.core.statements import Ed25519Signer, format_canonical, seal_envelope
from rgs.core.statements.kinds import KINDS
from rgs.core.statements.lines import ExportLine, format_line
from rgs.core.times import format_time
from tests.support.clocks import NOW_MS
from tests.support.service.harness import NODE_KEY, ROOT_KEY, key_bundle

FILES = {"index.html": b"<p>page</p>", "figures/a.svg": b"<svg/>", "results/kat.json": b"{}\n", "times.json": b"{}\n"}
SEED = b"the node of a test server: 32 by"
PEM = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + SEED).decode()
STRANGER = Ed25519Signer.from_seed(bytes(32))


def made(folder: Path, signer: Ed25519Signer | None = NODE_KEY) -> Path:
    out = folder / "dossier"
    out.mkdir()
    bundle.write_bundle(out, FILES, signer, NOW_MS)
    return out


def key_file(path: Path, text: str | None = None, mode: int = 0o600) -> Path:
    path.write_text(text or f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----\n", encoding="ascii")
    path.chmod(mode)
    return path


def test_a_bundle_verifies_and_every_changed_byte_is_seen(tmp_path: Path) -> None:
    out = made(tmp_path)
    lines = list(bundle.verify(out, bundle=key_bundle(), root=ROOT_KEY.keyid))
    assert lines[0].startswith("4 files are those of SHA256SUMS")
    assert lines[1].endswith(f"with key {NODE_KEY.keyid} of node node-1, ANCHORED")
    for path in [path for path in sorted(out.rglob("*")) if path.is_file()]:
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(VerificationError):
                list(bundle.verify(out, bundle=key_bundle(), root=ROOT_KEY.keyid))
        path.write_bytes(whole)
    list(bundle.verify(out, bundle=key_bundle(), root=ROOT_KEY.keyid))


def test_files_that_are_missing_or_too_many_are_seen(tmp_path: Path) -> None:
    out = made(tmp_path)
    (out / "more.txt").write_text("more")
    with pytest.raises(VerificationError, match=r"more\.txt is not named"):
        list(bundle.verify(out))
    (out / "more.txt").unlink()
    (out / "link").symlink_to(out / "index.html")
    with pytest.raises(VerificationError, match="not a plain file"):
        list(bundle.verify(out))
    (out / "link").unlink()
    (out / "index.html").unlink()
    with pytest.raises(VerificationError, match=r"index\.html is not there"):
        list(bundle.verify(out))


@pytest.mark.parametrize("line", ["../x", "/x", "a//b", "a/../b", ".hidden", "", "x y", "SHA256SUMS", "dossier.jsonl"])
def test_names_that_leave_the_folder_or_unsay_the_signature_are_refused(tmp_path: Path, line: str) -> None:
    out = made(tmp_path)
    sums = out / bundle.SUMS
    sums.write_bytes(f"{'0' * 64}  {line}\n".encode() + sums.read_bytes())
    with pytest.raises(VerificationError, match=r"SHA256SUMS, line"):
        list(bundle.verify(out))


def test_the_sums_are_those_of_the_ordinary_program(tmp_path: Path) -> None:
    sums = (made(tmp_path) / bundle.SUMS).read_text("ascii").splitlines()
    assert sums == [f"{hashlib.sha256(FILES[name]).hexdigest()}  {name}" for name in sorted(FILES)]


def test_a_key_that_nobody_vouches_for_is_told_so(tmp_path: Path) -> None:
    out = made(tmp_path, STRANGER)
    assert "UNANCHORED" in list(bundle.verify(out))[1]
    assert "ANCHORED by its name" in list(bundle.verify(out, keyid=STRANGER.keyid))[1]
    with pytest.raises(VerificationError, match="signed with key"):
        list(bundle.verify(out, keyid=NODE_KEY.keyid))
    with pytest.raises(VerificationError):  # the server's bundle does not name it
        list(bundle.verify(out, bundle=key_bundle()))


def test_the_root_is_the_one_that_was_brought(tmp_path: Path) -> None:
    out = made(tmp_path)
    assert "no root was brought" in list(bundle.verify(out, bundle=key_bundle()))[1]
    with pytest.raises(VerificationError, match="the root of the key bundle"):
        list(bundle.verify(out, bundle=key_bundle(), root=STRANGER.keyid))


def test_an_unsigned_bundle_does_not_verify(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="not signed"):
        list(bundle.verify(made(tmp_path, None)))


def test_a_signature_over_something_else_is_refused(tmp_path: Path) -> None:
    out = made(tmp_path)
    digest = hashlib.sha256((out / bundle.SUMS).read_bytes()).hexdigest()
    for name, sha256 in (("reconciliation/report.json", digest), (bundle.REPORT_NAME, "0" * 64)):
        body = {"kind": "report", "name": name, "sha256": sha256, "time": format_time(NOW_MS)}
        envelope = seal_envelope(KINDS["report"].payload_type, format_canonical(body), NODE_KEY)
        (out / bundle.SIGNED).write_bytes(format_line(ExportLine(envelope, None)) + b"\n")
        with pytest.raises(VerificationError, match="is not about these"):
            list(bundle.verify(out))


def test_the_zip_is_the_same_for_the_same_files(tmp_path: Path) -> None:
    out = made(tmp_path)
    for name in ("one.zip", "two.zip"):
        bundle.write_zip(out, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        archive.extractall(unpacked)
    assert "UNANCHORED" in list(bundle.verify(unpacked / "dossier"))[1]


# --- keys ---


def test_a_private_key_is_read_and_nothing_else(tmp_path: Path) -> None:
    assert bundle.load_signer(key_file(tmp_path / "key")).keyid == NODE_KEY.keyid
    encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
    other = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    odd = "-----BEGIN PRIVATE KEY-----\nAAA\n-----END PRIVATE KEY-----\n"
    for text in (encrypted, other, odd, "pkcs11:token=rgs", " "):
        with pytest.raises(FormatError, match="not an Ed25519 private key"):
            bundle.load_signer(key_file(tmp_path / "key", text))
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        bundle.load_signer(tmp_path / "none")
    with pytest.raises(FormatError, match="read by others"):
        bundle.load_signer(key_file(tmp_path / "key", mode=0o644))


def test_a_home_signs_with_its_node_key_if_its_bundle_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="not a home"):
        bundle.load_node_signer(tmp_path, NOW_MS)
    keys = tmp_path / "keys"
    keys.mkdir()
    (tmp_path / "rgs.toml").write_text('node = "node1"\n')
    (keys / "keys.json").write_bytes(key_bundle())
    key_file(keys / "node.key")
    assert bundle.load_node_signer(tmp_path, NOW_MS).keyid == NODE_KEY.keyid
    wrong = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + bytes(32)).decode()
    key_file(keys / "node.key", f"-----BEGIN PRIVATE KEY-----\n{wrong}\n-----END PRIVATE KEY-----\n")
    with pytest.raises(VerificationError):
        bundle.load_node_signer(tmp_path, NOW_MS)


# --- the command ---


def test_the_command_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = made(tmp_path)
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_bundle())
    assert main(["dossier", "verify", str(out), "--keys", str(keys), "--root", ROOT_KEY.keyid]) == 0
    assert capsys.readouterr().out.endswith("of node node-1, ANCHORED\n")
    with pytest.raises(SystemExit, match="2"):  # without a bundle nothing would be compared with the root
        main(["dossier", "verify", str(out), "--root", ROOT_KEY.keyid])
    assert "give the bundle, too, with --keys" in capsys.readouterr().err
    (out / "index.html").write_text("other")
    assert main(["dossier", "verify", str(out)]) == 1
    assert capsys.readouterr().out == "FAILED: index.html is not the file that SHA256SUMS names\n"
    shutil.rmtree(out)
    assert main(["dossier", "verify", str(out)]) == 2
    assert "not a folder" in capsys.readouterr().err
