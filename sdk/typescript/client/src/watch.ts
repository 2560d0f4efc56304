/**
 * The Watch stream of tables, with play on it: one for as many tables and seats as are wanted. Views are whole, so a
 * stream that broke is opened again and shows the present state; nothing else has to be caught up with.
 */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, type ClientDuplexStream, status as Code } from "@grpc/grpc-js";
import {
  type ChatLine,
  type DecideRequestSchema,
  type DecideResponse,
  type JoinRequestSchema,
  type JoinResponse,
  type LeaveRequestSchema,
  type LeaveResponse,
  type PlaceBetsRequestSchema,
  type PlaceBetsResponse,
  type SayRequestSchema,
  type SayResponse,
  type SeatView,
  TableService,
  type TableView,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "../build/rgs/v1/table_pb.js";
import { errorMadeHere, errorOf, type RgsError } from "./errors.js";
import { DEFAULT_POLICY } from "./retry.js";
import { announce, copyOf, openDuplex, pathOf, type Settings } from "./service.js";
import { RequestStream } from "./stream.js";

export interface WatchListener {
  readonly onTable?: (view: TableView) => void;
  readonly onSeat?: (view: SeatView) => void;
  readonly onLine?: (line: ChatLine) => void;
  /**
   * The server does not show something, or not any more: `metadata.table` or `metadata.session_id` names it, and it is
   * watched no more. Or the stream has ended, and repeats did not help. Watch anew, after a pause.
   */
  readonly onError?: (error: RgsError) => void;
}

type Play = "join" | "leave" | "placeBets" | "decide" | "say";

/** One stream, kept open while anything is watched. */
export class TableWatch {
  private readonly stream: RequestStream<WatchRequest, WatchResponse>;
  /** Tables that are watched, with the version of their newest view. */
  private readonly tables = new Map<string, bigint>();
  private readonly sessions = new Set<string>();
  /** Of both those that the server may not know of, since an error came: watching them again tells it. */
  private readonly doubted = new Set<string>();

  constructor(
    next: () => Client,
    private readonly settings: Settings,
    listener: WatchListener = {},
  ) {
    const path = pathOf(TableService.method.watch);
    this.stream = new RequestStream(
      {
        open: () => {
          this.doubted.clear(); // it begins with all of them
          return openDuplex(TableService.method.watch, next()) as unknown as ClientDuplexStream<WatchRequest, WatchResponse>;
        },
        greetings: () => [
          ...[...this.tables].map(([table, afterVersion]) => watching({ case: "watchTable", value: { table, afterVersion } })),
          ...[...this.sessions].map((sessionId) => watching({ case: "watchSession", value: { sessionId } })),
        ],
        take: ({ response }) => {
          switch (response.case) {
            case "table":
              if (this.tables.has(response.value.table)) this.tables.set(response.value.table, response.value.version);
              listener.onTable?.(response.value);
              return true;
            case "seat":
              listener.onSeat?.(response.value);
              return true;
            case "line":
              listener.onLine?.(response.value);
              return true;
            default:
              return false;
          }
        },
        requestIdOf: ({ requestId }) => requestId,
        errorIn: ({ requestId, response }) =>
          response.case === "error" ? errorOf(response.value, requestId) : undefined,
        onError: (error) => {
          this.doubt(error);
          listener.onError?.(error);
        },
        onRepeat: (requestId, error) => settings.onRepeat?.(path, requestId, error),
      },
      { ...DEFAULT_POLICY, ...settings.policy },
    );
  }

  /** Have the table's views and lines of chat from now on. */
  watchTable(table: string): void {
    if (!this.doubted.delete(table) && this.tables.has(table)) return;
    this.tables.set(table, 0n);
    this.stream.tell(watching({ case: "watchTable", value: { table } }));
  }

  leaveTable(table: string): void {
    this.doubted.delete(table);
    if (this.tables.delete(table)) this.stream.tell(watching({ case: "leaveTable", value: { table } }));
  }

  /** Have the views of the session's seat from now on. */
  watchSession(sessionId: string): void {
    if (!this.doubted.delete(sessionId) && this.sessions.has(sessionId)) return;
    this.sessions.add(sessionId);
    this.stream.tell(watching({ case: "watchSession", value: { sessionId } }));
  }

  leaveSession(sessionId: string): void {
    this.doubted.delete(sessionId);
    if (this.sessions.delete(sessionId)) this.stream.tell(watching({ case: "leaveSession", value: { sessionId } }));
  }

  join(request: MessageInitShape<typeof JoinRequestSchema>): Promise<JoinResponse> {
    return this.ask("join", request) as Promise<JoinResponse>;
  }

  leave(request: MessageInitShape<typeof LeaveRequestSchema>): Promise<LeaveResponse> {
    return this.ask("leave", request) as Promise<LeaveResponse>;
  }

  placeBets(request: MessageInitShape<typeof PlaceBetsRequestSchema>): Promise<PlaceBetsResponse> {
    return this.ask("placeBets", request) as Promise<PlaceBetsResponse>;
  }

  decide(request: MessageInitShape<typeof DecideRequestSchema>): Promise<DecideResponse> {
    return this.ask("decide", request) as Promise<DecideResponse>;
  }

  say(request: MessageInitShape<typeof SayRequestSchema>): Promise<SayResponse> {
    return this.ask("say", request) as Promise<SayResponse>;
  }

  close(): void {
    this.stream.close();
  }

  /** Forget what the error names. One that names nothing is about any of them, or about the whole stream. */
  private doubt(error: RgsError): void {
    if (error.requestId !== "") return; // about play
    const sessionId = named(error, "session_id");
    const table = named(error, "table");
    if (sessionId !== undefined) this.sessions.delete(sessionId); // also where it names the session's table
    else if (table !== undefined) this.tables.delete(table);
    else for (const one of [...this.tables.keys(), ...this.sessions]) this.doubted.add(one);
  }

  private async ask(name: Play, request: object): Promise<object> {
    const method = TableService.method[name];
    const message = copyOf(method.input as DescMessage, request as Record<string, unknown>);
    const requestId = await announce(pathOf(method), method.input, message, this.settings);
    const { response } = await this.stream.ask(watching({ case: name, value: message } as WatchRequest["request"]), requestId);
    if (response.case !== name) throw errorMadeHere(Code.DATA_LOSS, `the answer is of ${response.case}`, requestId);
    return response.value;
  }
}

/** The table or session that the server's error is about: by its own name, or as the value of a field that is wrong. */
function named({ metadata }: RgsError, key: "table" | "session_id"): string | undefined {
  return metadata[key] ?? (metadata["field"] === key ? metadata["value"] : undefined);
}

function watching(request: MessageInitShape<typeof WatchRequestSchema>["request"] & object): WatchRequest {
  return create(WatchRequestSchema, { request } as MessageInitShape<typeof WatchRequestSchema>);
}
