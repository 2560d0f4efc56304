/**
 * A bidirectional stream with requests and answers on it. Answers find their request by its id. When the stream ends
 * while something waits or is watched, another is opened, and what was not answered is sent again, in its order and with
 * its ids. Otherwise the next request opens another.
 */
import { type ClientDuplexStream, status as Code } from "@grpc/grpc-js";
import { errorMadeHere, errorOfCall, OutcomeUnknownError, RgsError } from "./errors.js";
import { pauseBefore, type RetryPolicy, sleep } from "./retry.js";

interface Waiting<Request, Response> {
  readonly message: Request;
  readonly requestId: string;
  attempt: number;
  isSent: boolean;
  timer?: NodeJS.Timeout;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: RgsError) => void;
}

export interface StreamHooks<Request, Response> {
  readonly open: () => ClientDuplexStream<Request, Response>;
  /** What is sent first on every new stream: subscriptions. While there are any, a stream is kept open. */
  readonly greetings: () => Request[];
  /** Take a message that answers nothing. False: it is an answer. */
  readonly take: (response: Response) => boolean;
  readonly requestIdOf: (response: Response) => string;
  /** The error that an answer carries; undefined for a good one. */
  readonly errorIn: (response: Response) => RgsError | undefined;
  /** An error that belongs to no request, or the end of the stream after too many attempts. */
  readonly onError: (error: RgsError) => void;
  readonly onRepeat: (requestId: string, error: RgsError) => void;
}

export class RequestStream<Request, Response> {
  private call: ClientDuplexStream<Request, Response> | undefined;
  private readonly waiting: Waiting<Request, Response>[] = [];
  private failures = 0;
  private isReconnecting = false;
  private isClosed = false;

  constructor(
    private readonly hooks: StreamHooks<Request, Response>,
    private readonly policy: RetryPolicy,
  ) {}

  /** Send a request; its answer. RgsError if it is refused, OutcomeUnknownError if it is not answered. */
  ask(message: Request, requestId: string): Promise<Response> {
    if (this.isClosed) return Promise.reject(errorMadeHere(Code.FAILED_PRECONDITION, "the stream is closed", requestId));
    return new Promise((resolve, reject) => {
      const one = { message, requestId, attempt: 1, isSent: false, resolve, reject };
      this.waiting.push(one);
      if (!this.isReconnecting) this.transmit(one);
    });
  }

  /** Subscriptions have changed: send this message, or open a stream, which begins with all of them. */
  tell(message: Request): void {
    if (this.isClosed || this.isReconnecting) return;
    if (this.call !== undefined) this.call.write(message);
    else if (this.hooks.greetings().length > 0) this.opened();
  }

  /** End the stream. Requests without an answer fail: they may have taken effect. */
  close(): void {
    this.isClosed = true;
    const call = this.call;
    this.call = undefined;
    call?.end();
    call?.cancel();
    this.failAll(errorMadeHere(Code.CANCELLED, "the stream was closed before the answer came"));
  }

  private opened(): ClientDuplexStream<Request, Response> {
    if (this.call !== undefined) return this.call;
    const call = this.hooks.open();
    this.call = call;
    call.on("data", (response: Response) => {
      if (this.call === call) this.received(response);
    });
    call.on("error", (error) => this.ended(call, error));
    call.on("end", () => this.ended(call, errorMadeHere(Code.UNAVAILABLE, "the server ended the stream")));
    for (const greeting of this.hooks.greetings()) call.write(greeting);
    return call;
  }

  private transmit(one: Waiting<Request, Response>): void {
    one.isSent = true;
    // No answer in time: the stream may be dead without saying so. Another one is opened.
    one.timer = setTimeout(() => {
      const call = this.call;
      if (call === undefined) return;
      call.cancel();
      this.ended(call, errorMadeHere(Code.DEADLINE_EXCEEDED, `no answer in ${this.policy.timeoutMs} ms`));
    }, this.policy.timeoutMs);
    this.opened().write(one.message);
  }

  private received(response: Response): void {
    this.failures = 0;
    if (this.hooks.take(response)) return;
    const requestId = this.hooks.requestIdOf(response);
    const error = this.hooks.errorIn(response);
    const index = this.waiting.findIndex((one) => one.isSent && one.requestId === requestId);
    const one = this.waiting[index];
    if (one === undefined) {
      if (error !== undefined) this.hooks.onError(error);
      return; // the second answer to a request that was sent twice
    }
    if (error !== undefined && this.repeatLater(one, error)) return;
    this.waiting.splice(index, 1);
    clearTimeout(one.timer);
    if (error === undefined) one.resolve(response);
    else one.reject(error);
  }

  /** Have a request that was refused in band sent again after a pause. False if it must not be. */
  private repeatLater(one: Waiting<Request, Response>, error: RgsError): boolean {
    const pause = pauseBefore(one.attempt + 1, error, this.policy);
    if (pause === undefined) return false;
    one.attempt++;
    one.isSent = false;
    clearTimeout(one.timer);
    this.hooks.onRepeat(one.requestId, error);
    setTimeout(() => {
      if (this.waiting.includes(one) && !one.isSent && !this.isReconnecting) this.transmit(one);
    }, pause);
    return true;
  }

  private ended(call: ClientDuplexStream<Request, Response>, failure: unknown): void {
    if (this.call !== call) return;
    this.call = undefined;
    if (this.isClosed) return;
    const error = errorOfCall(failure);
    this.failures++;
    for (const one of [...this.waiting]) {
      clearTimeout(one.timer);
      if (!one.isSent) continue;
      one.isSent = false;
      one.attempt++;
      if (pauseBefore(one.attempt, error, this.policy) === undefined) this.fail(one, error);
      else this.hooks.onRepeat(one.requestId, error);
    }
    const isWanted = this.waiting.length > 0 || this.hooks.greetings().length > 0;
    const pause = isWanted ? pauseBefore(this.failures + 1, error, this.policy) : undefined;
    if (pause !== undefined) {
      void this.reconnect(pause);
      return;
    }
    this.failures = 0; // whatever opens the next one has all its attempts
    if (!isWanted) return;
    this.failAll(error);
    this.hooks.onError(error);
  }

  private async reconnect(pause: number): Promise<void> {
    this.isReconnecting = true;
    await sleep(pause);
    this.isReconnecting = false;
    if (this.isClosed) return;
    this.opened();
    for (const one of this.waiting) if (!one.isSent) this.transmit(one);
  }

  private failAll(error: RgsError): void {
    for (const one of [...this.waiting]) this.fail(one, error);
  }

  private fail(one: Waiting<Request, Response>, error: RgsError): void {
    clearTimeout(one.timer);
    this.waiting.splice(this.waiting.indexOf(one), 1);
    // Sent at least once, perhaps: whatever ended the stream, what became of the request is open.
    const open = new OutcomeUnknownError(error.code, error.message, error.reason, error.metadata);
    open.requestId = one.requestId;
    one.reject(open);
  }
}
