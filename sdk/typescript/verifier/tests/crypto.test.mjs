/** Hashes and signatures: against the platform's, the vectors of RFC 8032 7.1, and what no verifier may accept. */

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import test from "node:test";
import { hex, unhex, utf8 } from "../dist/bytes.js";
import { platformKnowsEd25519, verifyAlone, verifySignature } from "../dist/ed25519.js";
import { sha256, sha512 } from "../dist/sha2.js";

const L = (1n << 252n) + 27742317777372353535851937790883648493n;
const RFC_8032 = [
  [
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "",
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  ],
  [
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "72",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  ],
  [
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "af82",
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
  ],
];
/** All points of small order in their canonical encodings. */
const SMALL_ORDER = [
  "0100000000000000000000000000000000000000000000000000000000000000",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0000000000000000000000000000000000000000000000000000000000000080",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];
const BOTH = [
  ["alone", async (key, message, signature) => verifyAlone(key, message, signature)],
  ["by the platform", verifySignature],
];

function bytes(count, from) {
  return Uint8Array.from({ length: count }, (_, at) => (at * 31 + from * 7 + (at >> 3)) & 255);
}

function number(value) {
  return Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * at)) & 255n));
}

function joined(...parts) {
  return Uint8Array.from(Buffer.concat(parts));
}

test("SHA-256 and SHA-512 are the platform's, at all lengths around a block", () => {
  for (const length of [...Array(300).keys(), 1000, 4096, 73727]) {
    const data = bytes(length, length);
    assert.equal(hex(sha256(data)), createHash("sha256").update(data).digest("hex"), `SHA-256 of ${length}`);
    assert.equal(hex(sha512(data)), createHash("sha512").update(data).digest("hex"), `SHA-512 of ${length}`);
  }
});

// Node 18 offers WebCrypto behind an option only: there the platform's way is our own, and that is tested.
const noWebCrypto = globalThis.crypto === undefined && "this Node has no WebCrypto: signatures are computed here alone";

test("this Node knows Ed25519: both ways are tested here", { skip: noWebCrypto }, async () => {
  assert.equal(await platformKnowsEd25519(), true);
});

for (const [way, verify] of BOTH) {
  test(`the signatures of RFC 8032 verify ${way}, and no changed one`, async () => {
    for (const [key, message, signature] of RFC_8032) {
      assert.equal(await verify(unhex(key), unhex(message), unhex(signature)), true);
      for (let bit = 0; bit < 512; bit += 37) {
        const changed = unhex(signature);
        changed[bit >> 3] ^= 1 << (bit & 7);
        assert.equal(await verify(unhex(key), unhex(message), changed), false, `bit ${bit}`);
      }
      assert.equal(await verify(unhex(key), unhex(`${message}00`), unhex(signature)), false);
      assert.equal(await verify(unhex(RFC_8032[0][0]), utf8("another"), unhex(signature)), false);
    }
  });

  test(`what OpenSSL signs verifies ${way}`, async () => {
    for (let turn = 0; turn < 8; turn += 1) {
      const { publicKey, privateKey } = generateKeyPairSync("ed25519");
      const key = Uint8Array.from(publicKey.export({ type: "spki", format: "der" }).subarray(-32));
      const message = bytes(turn * 211, turn);
      const signature = Uint8Array.from(sign(null, message, privateKey));
      assert.equal(await verify(key, message, signature), true);
      assert.equal(await verify(key, message, joined(signature.subarray(0, 63), Uint8Array.of(signature[63] ^ 1))), false);
    }
  });

  test(`S plus the order of the group is refused ${way}`, async () => {
    const [key, message, signature] = RFC_8032[1].map(unhex);
    let s = 0n;
    for (let at = 63; at >= 32; at -= 1) s = (s << 8n) | BigInt(signature[at]);
    const forged = joined(signature.subarray(0, 32), number(s + L));
    assert.equal(await verify(key, message, forged), false);
    assert.equal(await verify(key, message, joined(signature.subarray(0, 32), number(s))), true);
  });

  test(`a key of small order signs nothing ${way}`, async () => {
    for (const key of SMALL_ORDER) {
      for (const r of SMALL_ORDER) {
        const signature = joined(unhex(r), new Uint8Array(32));
        for (let turn = 0; turn < 8; turn += 1) {
          assert.equal(await verify(unhex(key), bytes(turn, 1), signature), false, `${key} ${r}`);
        }
      }
    }
  });

  test(`a point R of small order is refused under a good key ${way}`, async () => {
    // R is the neutral element, S is 8 times anything: only the one who knows the key could make it fit.
    for (const r of SMALL_ORDER) {
      const signature = joined(unhex(r), number(8n));
      assert.equal(await verify(unhex(RFC_8032[0][0]), new Uint8Array(), signature), false);
    }
  });

  test(`points that are not in their one encoding, or on no curve, are refused ${way}`, async () => {
    const p = (1n << 255n) - 19n;
    for (const y of [p, p + 1n, p + 18n, (1n << 255n) - 1n, (1n << 255n) + 1n, 2n, 7n]) {
      const [good, message, signature] = RFC_8032[2].map(unhex);
      assert.equal(await verify(number(y), message, signature), false, `key ${y}`);
      assert.equal(await verify(good, message, joined(number(y), signature.subarray(32))), false, `R ${y}`);
    }
    const [key, message, signature] = RFC_8032[0].map(unhex);
    assert.equal(await verify(key.subarray(0, 31), message, signature), false);
    assert.equal(await verify(key, message, signature.subarray(0, 63)), false);
  });
}
