/** A connection to the server, over TLS with certificates on both sides, and all of its services. */
import { Client, credentials } from "@grpc/grpc-js";
import { AdminService } from "../build/rgs/v1/admin_pb.js";
import { AuditService } from "../build/rgs/v1/audit_pb.js";
import { CatalogService } from "../build/rgs/v1/catalog_pb.js";
import { FreeBetService } from "../build/rgs/v1/free_bet_pb.js";
import { HistoryService } from "../build/rgs/v1/history_pb.js";
import { PlayService } from "../build/rgs/v1/play_pb.js";
import { ReconciliationService } from "../build/rgs/v1/reconciliation_pb.js";
import { ReportService } from "../build/rgs/v1/report_pb.js";
import { SessionService } from "../build/rgs/v1/session_pb.js";
import { SupportService } from "../build/rgs/v1/support_pb.js";
import { TableAdminService, TableService } from "../build/rgs/v1/table_pb.js";
import { type PlayListener, PlayStream } from "./play.js";
import { serviceOf, type Settings } from "./service.js";
import { TableWatch, type WatchListener } from "./watch.js";

export interface Connection extends Settings {
  /** host:port; the server's certificate must name this host. */
  readonly address: string;
  /** PEM: who signs the server's certificate. */
  readonly ca: Uint8Array;
  /** PEM: the party's own certificate, and its key. */
  readonly certificate: Uint8Array;
  readonly key: Uint8Array;
  /** Connections to spread calls over: four for every worker of the host (docs/integration.md). 1 if left out. */
  readonly channels?: number;
}

const OPTIONS = {
  "grpc.use_local_subchannel_pool": 1, // or all channels would share one connection
  "grpc.keepalive_time_ms": 20_000, // the server cuts whoever pings more often than every ten seconds
  "grpc.keepalive_timeout_ms": 10_000,
};

/** Connect. Nothing is sent before the first call, and a broken connection is opened again by the next one. */
export function connect(connection: Connection) {
  const { address, ca, certificate, key, channels: count = 1, ...settings } = connection;
  if (!Number.isInteger(count) || count < 1) throw new RangeError(`channels must be a whole number from 1, not ${count}`);
  const secured = credentials.createSsl(Buffer.from(ca), Buffer.from(key), Buffer.from(certificate));
  const channels = Array.from({ length: count }, () => new Client(address, secured, OPTIONS));
  let calls = 0;
  const next = (): Client => channels[calls++ % count] as Client;
  return {
    catalog: serviceOf(CatalogService, next, settings),
    reports: serviceOf(ReportService, next, settings),
    sessions: serviceOf(SessionService, next, settings),
    play: serviceOf(PlayService, next, settings),
    freeBets: serviceOf(FreeBetService, next, settings),
    history: serviceOf(HistoryService, next, settings),
    audit: serviceOf(AuditService, next, settings),
    tables: serviceOf(TableService, next, settings),
    reconciliation: serviceOf(ReconciliationService, next, settings),
    support: serviceOf(SupportService, next, settings),
    admin: serviceOf(AdminService, next, settings),
    tableAdmin: serviceOf(TableAdminService, next, settings),
    /** Rounds over one stream. */
    playStream: (listener?: PlayListener): PlayStream => new PlayStream(next, settings, listener),
    /** Tables and seats over one stream. */
    tableWatch: (listener?: WatchListener): TableWatch => new TableWatch(next, settings, listener),
    /** Close all connections. Close streams first. */
    close: (): void => {
      for (const channel of channels) channel.close();
    },
  };
}

export type Rgs = ReturnType<typeof connect>;
