/** Errors from a status: reason, metadata, violations, the time of a repeat, and whether the outcome is open. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata } from "@grpc/grpc-js";
import { BadRequestSchema, RetryInfoSchema } from "../build/google/rpc/error_details_pb.js";
import { StatusSchema } from "../build/google/rpc/status_pb.js";
import { errorMadeHere, errorOf, errorOfCall, isRepeatable } from "../src/errors.js";
import { ActResponseSchema, Code, OutcomeUnknownError, RgsError } from "../src/index.js";
import { refusal } from "./refusal.js";

test("a refusal has reason, metadata and violations", () => {
  const status = refusal(Code.INVALID_ARGUMENT, "INVALID_FIELD");
  const violation = { field: "player", description: "too long" };
  status.details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: [violation] })));
  const error = errorOf(status, "id");
  assert.ok(!(error instanceof OutcomeUnknownError));
  assert.equal(`${error}`, "RgsError: no [INVALID_FIELD]");
  assert.deepEqual(error.metadata, { limit: "7" });
  assert.deepEqual(error.violations, [violation]);
  assert.equal(error.requestId, "id");
  assert.equal(error.retryAfterMs, undefined);
  assert.equal(isRepeatable(error), false);
});

test("which errors leave the outcome open, and which are repeated", () => {
  const rows: [Code, string, boolean, boolean][] = [
    [Code.UNAVAILABLE, "", true, true],
    [Code.UNAVAILABLE, "STORE_OUTCOME_UNKNOWN", true, true],
    [Code.DEADLINE_EXCEEDED, "", true, true],
    [Code.CANCELLED, "", true, true],
    [Code.UNKNOWN, "", true, true],
    [Code.INTERNAL, "", true, true],
    [Code.INTERNAL, "INTERNAL", true, true],
    [Code.RESOURCE_EXHAUSTED, "", true, true],
    [Code.RESOURCE_EXHAUSTED, "STREAM_STALLED", true, true],
    [Code.RESOURCE_EXHAUSTED, "PARTY_LIMIT", false, true],
    [Code.FAILED_PRECONDITION, "OPERATION_PENDING", false, true],
    [Code.ABORTED, "REQUEST_SEEN", true, true],
    [Code.ABORTED, "ROUND_CHANGED", false, false],
    [Code.FAILED_PRECONDITION, "TOO_EARLY", false, false],
    [Code.ALREADY_EXISTS, "IDEMPOTENCY_CONFLICT", false, false],
    [Code.UNAUTHENTICATED, "CERTIFICATE_NOT_ALLOWED", false, false],
  ];
  for (const [code, reason, isOpen, isRepeated] of rows) {
    const error = errorOf(refusal(code, reason));
    assert.deepEqual([error instanceof OutcomeUnknownError, isRepeatable(error)], [isOpen, isRepeated], `${code} ${reason}`);
  }
});

test("the time of a repeat is rounded up to whole milliseconds", () => {
  assert.equal(errorOf(refusal(Code.UNAVAILABLE, "WALLET_UNAVAILABLE", 2_250)).retryAfterMs, 2_250);
  const status = refusal(Code.UNAVAILABLE);
  const retryDelay = { seconds: 0n, nanos: 1 };
  status.details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  assert.equal(errorOf(status).retryAfterMs, 1);
});

test("a refusal may carry the fresh view", () => {
  const status = refusal(Code.ABORTED, "ROUND_CHANGED");
  status.details.push(anyPack(ActResponseSchema, create(ActResponseSchema, { round: { roundId: "r1" } })));
  const error = errorOf(status);
  assert.equal(error.detail(ActResponseSchema)?.round?.roundId, "r1");
  assert.equal(error.detail(BadRequestSchema), undefined);
});

test("a call's error is read from its trailing metadata", () => {
  const failed = (packed: Uint8Array | undefined): Error => {
    const metadata = new Metadata();
    if (packed !== undefined) metadata.set("grpc-status-details-bin", Buffer.from(packed));
    return Object.assign(new Error("5 NOT_FOUND: gone"), { code: Code.NOT_FOUND, details: "gone", metadata });
  };
  const full = errorOfCall(failed(toBinary(StatusSchema, refusal(Code.NOT_FOUND, "UNKNOWN_RULESET"))));
  assert.equal(full.reason, "UNKNOWN_RULESET");
  for (const packed of [undefined, Uint8Array.of(0xff)]) {
    const bare = errorOfCall(failed(packed), "id");
    assert.deepEqual([bare.code, bare.message, bare.reason, bare.requestId], [Code.NOT_FOUND, "gone", "", "id"]);
  }
  assert.throws(() => errorOfCall(new TypeError("a mistake")), TypeError);
  const known = errorMadeHere(Code.DATA_LOSS, "x");
  assert.equal(errorOfCall(known), known);
  assert.ok(known instanceof RgsError);
});
