/**
 * The one connection of the page to the bridge. Requests have an id of their own; what is not answered stands in
 * sessionStorage and is sent again, under the same id, after a reconnect or a reload. Messages of the bridge are numbered
 * (`seq`); a new socket asks for what follows the last one.
 */

export interface SocketLike {
  send(text: string): void;
  close(code?: number): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
}

export interface StorageLike {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export interface Surroundings {
  open(path: string): SocketLike;
  storage: StorageLike;
  now(): number;
  uuid(): string;
  random(): number;
  after(ms: number, run: () => void): unknown;
  cancel(timer: unknown): void;
  /** Whether the player sees the page. */
  visible(): boolean;
}

export interface Message {
  seq?: number;
  type: string;
  re?: string;
  value?: unknown;
  reason?: string;
  message?: string;
  metadata?: Record<string, string>;
  [more: string]: unknown;
}

export type LinkState = "connecting" | "open" | "reconnecting" | "ended";

/** A refusal of the bridge or the RGS. `value` is a fresh view where the refusal brings one. */
export class RequestError extends Error {
  constructor(
    readonly reason: string,
    message: string,
    readonly metadata: Record<string, string> = {},
    readonly value?: unknown,
  ) {
    super(message);
  }
}

interface Request {
  id: string;
  type: string;
  fields: Record<string, unknown>;
}

interface Waiting {
  request: Request;
  resolve(value: unknown): void;
  reject(error: RequestError): void;
}

/** Reads, which are not kept over a reload: the page asks anew. */
const READS = new Set(["sessions", "get", "round", "lobby", "lobby_off", "watch", "unwatch", "messages", "ping"]);
const BACKOFF_MS = [0, 250, 500, 1000, 2000, 4000];
const PING_MS = 5000;
/** So many pings with nothing heard behind them: the socket is dead. Timers may be late, so time says nothing. */
const UNHEARD_MAX = 2;
/** Excluded, signed out, the connection taken over by another tab, too many pages: the page does not come back by itself. */
export const CLOSED_FOR_GOOD = new Set([4001, 4003, 4004, 4008]);
const KEY = "bridge";

export class Connection {
  /** Every message that answers no request of this page. */
  onMessage: (message: Message) => void = () => {};
  /** An answer to a request of before a reload. */
  onLateAnswer: (request: { type: string; fields: Record<string, unknown> }, message: Message) => void = () => {};
  onState: (state: LinkState, code?: number) => void = () => {};
  /** A pong, with the time at which its ping was sent. */
  onPong: (serverTime: number, sent: number) => void = () => {};

  private socket: SocketLike | undefined;
  private open = false;
  private n = 0;
  private attempt = 0;
  /** When each ping without a pong was sent, by its id. */
  private readonly pings = new Map<string, number>();
  /** Pings since anything was heard. */
  private unheard = 0;
  private retry: unknown;
  private beat: unknown;
  private stopped = false;
  private readonly waiting = new Map<string, Waiting>();
  private readonly before = new Map<string, Request>();
  private readonly id: string;
  private seq: number;

  /** `fresh`: a new connection, although this tab had one (a tab that was copied has the same storage). */
  constructor(
    private readonly around: Surroundings,
    fresh: boolean,
  ) {
    const kept = readKept(around.storage);
    this.id = fresh || !kept.connection ? around.uuid() : kept.connection;
    this.seq = fresh ? 0 : kept.seq;
    for (const request of kept.requests) this.before.set(request.id, request);
    this.keep();
  }

  get connected(): boolean {
    return this.open;
  }

  start(): void {
    this.stopped = false;
    this.onState("connecting");
    this.connect();
  }

  /** Ends it. Nothing is told any more, not even the end. */
  stop(): void {
    const { socket } = this;
    this.stopped = true;
    this.open = false;
    this.socket = undefined;
    this.around.cancel(this.retry);
    this.around.cancel(this.beat);
    socket?.close(1000);
  }

  /** Forgets what was unanswered: at sign-out. */
  forget(): void {
    this.before.clear();
    this.waiting.clear();
    this.around.storage.removeItem(KEY);
  }

  /** Tries again at once: the network is back, or the page is seen again. */
  hurry(): void {
    if (this.open) {
      // No beat came while the page was hidden: what was not heard then does not count.
      this.unheard = 0;
      this.ping();
    }
    if (this.open || this.stopped || this.socket) return;
    this.around.cancel(this.retry);
    this.connect();
  }

  request(type: string, fields: Record<string, unknown> = {}): Promise<unknown> {
    const request = { id: this.around.uuid(), type, fields };
    return new Promise((resolve, reject) => {
      this.waiting.set(request.id, { request, resolve, reject });
      this.keep();
      if (this.open) this.transmit(request);
    });
  }

  /** Says something that wants no answer, if the bridge can hear it. */
  say(type: string, fields: Record<string, unknown> = {}): void {
    if (this.open) this.transmit({ id: this.around.uuid(), type, fields });
  }

  /** A ping now. A socket on which nothing was heard since the last ones is left. */
  private ping(): void {
    if (this.unheard >= UNHEARD_MAX) {
      this.socket?.close(4000);
      return;
    }
    this.unheard += 1;
    const id = this.around.uuid();
    this.pings.set(id, this.around.now());
    this.transmit({ id, type: "ping", fields: {} });
  }

  private connect(): void {
    const socket = this.around.open(`/ws?connection=${this.id}&after=${this.seq}`);
    this.socket = socket;
    this.n = 0;
    this.unheard = 0;
    this.pings.clear();
    socket.onopen = () => {
      if (this.socket !== socket) return;
      this.open = true;
      this.attempt = 0;
      for (const request of this.before.values()) this.transmit(request);
      for (const { request } of this.waiting.values()) this.transmit(request);
      this.onState("open");
      this.ping();
      this.beatOn();
    };
    socket.onmessage = (event) => {
      if (this.socket !== socket) return;
      this.unheard = 0;
      if (typeof event.data === "string") this.take(JSON.parse(event.data) as Message);
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.socket = undefined;
      this.open = false;
      this.around.cancel(this.beat);
      if (CLOSED_FOR_GOOD.has(event.code)) {
        this.stopped = true;
        this.onState("ended", event.code);
        return;
      }
      this.onState("reconnecting", event.code);
      const step = BACKOFF_MS[Math.min(this.attempt, BACKOFF_MS.length - 1)] ?? 0;
      this.attempt += 1;
      this.retry = this.around.after(step * (0.75 + this.around.random() / 2), () => this.connect());
    };
  }

  private beatOn(): void {
    this.beat = this.around.after(PING_MS, () => {
      if (this.around.visible()) this.ping();
      if (this.open) this.beatOn();
    });
  }

  private transmit(request: Request): void {
    this.n += 1;
    this.socket?.send(JSON.stringify({ ...request.fields, id: request.id, type: request.type, n: this.n }));
  }

  private take(message: Message): void {
    const sent = message.type === "pong" ? this.pings.get(message.re ?? "") : undefined;
    if (sent !== undefined) {
      this.pings.delete(message.re ?? "");
      this.onPong(Date.parse(String(message["time"])), sent);
    }
    if (message.type === "restart") {
      // Answers may be among what was lost. The same id has the same answer again.
      this.seq = 0;
      for (const { request } of this.waiting.values()) this.transmit(request);
    }
    if (typeof message.seq === "number") {
      // After a reconnect the bridge sends only what follows; what is known already is not taken twice.
      if (message.seq <= this.seq && message.type !== "restart") return;
      this.seq = message.seq;
    }
    this.settle(message);
    this.keep();
  }

  private settle(message: Message): void {
    if (message.type === "pong") return;
    if (message.re === undefined || (message.type !== "answer" && message.type !== "error")) {
      this.onMessage(message);
      return;
    }
    const late = this.before.get(message.re);
    if (late) {
      this.before.delete(message.re);
      this.onLateAnswer(late, message);
      return;
    }
    const waiting = this.waiting.get(message.re);
    if (!waiting) return;
    this.waiting.delete(message.re);
    if (message.type === "answer") waiting.resolve(message.value);
    else {
      const { reason = "INTERNAL", message: text = "", metadata = {}, value } = message;
      waiting.reject(new RequestError(reason, text, metadata, value));
    }
  }

  private keep(): void {
    const unanswered = [...this.before.values(), ...[...this.waiting.values()].map((each) => each.request)];
    const requests = unanswered.filter((request) => !READS.has(request.type));
    this.around.storage.setItem(KEY, JSON.stringify({ connection: this.id, seq: this.seq, requests }));
  }
}

function readKept(storage: StorageLike): { connection: string; seq: number; requests: Request[] } {
  try {
    const kept = JSON.parse(storage.getItem(KEY) ?? "{}") as Partial<{ connection: string; seq: number; requests: Request[] }>;
    return { connection: kept.connection ?? "", seq: kept.seq ?? 0, requests: kept.requests ?? [] };
  } catch {
    return { connection: "", seq: 0, requests: [] };
  }
}
