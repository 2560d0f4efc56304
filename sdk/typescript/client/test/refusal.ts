/** A status as the server makes it. */
import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { status as Code } from "@grpc/grpc-js";
import { ErrorInfoSchema, RetryInfoSchema } from "../build/google/rpc/error_details_pb.js";
import { type Status, StatusSchema } from "../build/google/rpc/status_pb.js";

export function refusal(code: Code, reason = "", retryMs?: number): Status {
  const details = [];
  if (reason !== "") details.push(anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, metadata: { limit: "7" } })));
  if (retryMs !== undefined) {
    const retryDelay = { seconds: BigInt(Math.floor(retryMs / 1000)), nanos: (retryMs % 1000) * 1e6 };
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  return create(StatusSchema, { code, message: "no", details });
}
