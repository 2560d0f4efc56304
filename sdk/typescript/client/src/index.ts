/** A typed client of the remote game server. `connect` is where to begin (docs/sdk.md). */
/** To make a message beforehand, and to read a stored one back. */
export { create, fromBinary, toBinary } from "@bufbuild/protobuf";
export { status as Code } from "@grpc/grpc-js";
export { connect, type Connection, type Rgs } from "./connect.js";
export { OutcomeUnknownError, RgsError } from "./errors.js";
export { type PlayListener, PlayStream } from "./play.js";
export { DEFAULT_POLICY, type RetryPolicy } from "./retry.js";
export { type CallOptions, type Intent, newRequestId, type ServiceClient, type Settings } from "./service.js";
export { TableWatch, type WatchListener } from "./watch.js";
export * from "../build/rgs/v1/admin_pb.js";
export * from "../build/rgs/v1/audit_pb.js";
export * from "../build/rgs/v1/catalog_pb.js";
export * from "../build/rgs/v1/common_pb.js";
export * from "../build/rgs/v1/free_bet_pb.js";
export * from "../build/rgs/v1/history_pb.js";
export * from "../build/rgs/v1/play_pb.js";
export * from "../build/rgs/v1/reconciliation_pb.js";
export * from "../build/rgs/v1/report_pb.js";
export * from "../build/rgs/v1/session_pb.js";
export * from "../build/rgs/v1/support_pb.js";
export * from "../build/rgs/v1/table_pb.js";
