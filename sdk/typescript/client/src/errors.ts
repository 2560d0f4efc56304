/**
 * Errors as the server says them: a canonical gRPC code, a stable `reason`, `metadata` with what the message says
 * (docs/errors.md). Whether a request may have taken effect is in the class: OutcomeUnknownError, or RgsError.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBinary } from "@bufbuild/protobuf";
import { type Any, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status as Code } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../build/google/rpc/error_details_pb.js";
import { type Status, StatusSchema } from "../build/google/rpc/status_pb.js";

const DETAILS = "grpc-status-details-bin";

/** The server refused a request. Show people your own words, keyed by `reason`; log `metadata`. */
export class RgsError extends Error {
  override readonly name: string = "RgsError";

  constructor(
    /** The canonical gRPC code. */
    readonly code: Code,
    message: string,
    /** Stable, UPPER_SNAKE; empty where the error is the transport's. */
    readonly reason: string = "",
    /** What the message says: `field`, `limit`, `value` and others. */
    readonly metadata: Readonly<Record<string, string>> = {},
    /** The fields that are wrong, for INVALID_ARGUMENT. */
    readonly violations: readonly { field: string; description: string }[] = [],
    /** When the same request, with the same request id, may be sent again; undefined where the server says nothing. */
    readonly retryAfterMs: number | undefined = undefined,
    private readonly details: readonly Any[] = [],
    /** Of the request that was refused; empty for one that has none. */
    public requestId: string = "",
  ) {
    super(message);
  }

  /** A detail of this type: ROUND_CHANGED carries an ActResponse with the fresh view. */
  detail<Desc extends DescMessage>(schema: Desc): MessageShape<Desc> | undefined {
    for (const detail of this.details) {
      const found = anyUnpack(detail, schema);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  override toString(): string {
    return `${this.name}: ${this.message} [${this.reason || Code[this.code]}]`;
  }
}

/**
 * No attempt was answered, or the server failed (INTERNAL). The request may have taken effect: send it again later with
 * the same `requestId`, or read the state. Never send it under a new id.
 */
export class OutcomeUnknownError extends RgsError {
  override readonly name: string = "OutcomeUnknownError";
}

const UNANSWERED = new Set([Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNKNOWN]);
/** Of the transport where no reason is given: it broke, or a process was full. */
const UNANSWERED_BARE = new Set([Code.INTERNAL, Code.RESOURCE_EXHAUSTED]);
/** The server has the answer and gives it at the next attempt; a stream ended that was not read; the server failed. */
const UNANSWERED_REASONS = new Set(["REQUEST_SEEN", "STREAM_STALLED", "INTERNAL"]);
/** Nothing has happened, and the same request is taken after the time that the server names. */
const LATER_REASONS = new Set(["PARTY_LIMIT", "OPERATION_PENDING"]);

/** Whether the same request may be sent again by the client itself. */
export function isRepeatable(error: RgsError): boolean {
  return error instanceof OutcomeUnknownError || LATER_REASONS.has(error.reason);
}

/** The error that a `google.rpc.Status` says: that of a unary call, or one in band on a stream. */
export function errorOf(status: Status, requestId = ""): RgsError {
  const code = (status.code in Code ? status.code : Code.UNKNOWN) as Code;
  let reason = "";
  let metadata: Record<string, string> = {};
  let violations: { field: string; description: string }[] = [];
  let retryAfterMs: number | undefined;
  for (const detail of status.details) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info !== undefined) {
      reason = info.reason;
      metadata = { ...info.metadata };
      continue;
    }
    const retry = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
    if (retry !== undefined) {
      retryAfterMs = Number(retry.seconds) * 1000 + Math.ceil(retry.nanos / 1e6);
      continue;
    }
    const bad = anyUnpack(detail, BadRequestSchema);
    if (bad !== undefined) {
      violations = bad.fieldViolations.map(({ field, description }) => ({ field, description }));
    }
  }
  const open =
    UNANSWERED.has(code) || UNANSWERED_REASONS.has(reason) || (reason === "" && UNANSWERED_BARE.has(code));
  const kind = open ? OutcomeUnknownError : RgsError;
  return new kind(code, status.message, reason, metadata, violations, retryAfterMs, status.details, requestId);
}

/** The error of a call that gRPC ended. */
export function errorOfCall(error: unknown, requestId = ""): RgsError {
  if (error instanceof RgsError) return error;
  if (!isServiceError(error)) throw error; // a mistake in the program, not an answer
  const packed = error.metadata?.get(DETAILS)[0];
  if (packed instanceof Uint8Array) {
    try {
      return errorOf(fromBinary(StatusSchema, packed), requestId);
    } catch {
      // not a Status: what gRPC itself says is all there is
    }
  }
  return errorOf(bareStatus(error.code, error.details), requestId);
}

/** An error of the way, which no server has sent. */
export function errorMadeHere(code: Code, message: string, requestId = ""): RgsError {
  return errorOf(bareStatus(code, message), requestId);
}

function bareStatus(code: Code, message: string): Status {
  return { $typeName: "google.rpc.Status", code, message, details: [] };
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === "number";
}
