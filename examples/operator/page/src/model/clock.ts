/** The server's time in the page. It is never later than the server's own, so a countdown never ends too late. */

interface Sample {
  ahead: number;
  taken: number;
}

/** A sample older than this no longer counts: clocks drift. */
const KEPT_MS = 120_000;

export class ServerClock {
  private samples: Sample[] = [];

  /** `now` is the page's own steady clock, in milliseconds. */
  constructor(private readonly now: () => number) {}

  /**
   * A pong: sent at `sent` of the page's clock, received now. The server read its clock in between, so by now it shows at
   * most `serverTime` plus the whole way there and back.
   */
  heard(serverTime: number, sent: number): void {
    const received = this.now();
    this.samples.push({ ahead: serverTime + (received - sent) - received, taken: received });
    this.samples = this.samples.filter((sample) => received - sample.taken <= KEPT_MS);
  }

  get known(): boolean {
    return this.samples.length > 0;
  }

  /** The latest that the server's clock can show now. Undefined before the first pong. */
  latest(): number | undefined {
    if (!this.known) return undefined;
    return this.now() + Math.min(...this.samples.map((sample) => sample.ahead));
  }

  /** Milliseconds until a time of the server; never more than there are. Undefined before the first pong. */
  left(time: string | undefined): number | undefined {
    const latest = this.latest();
    if (time === undefined || latest === undefined) return undefined;
    return Math.max(0, Date.parse(time) - latest);
  }
}

/** `1:02:03`, in whole seconds. */
export function formatElapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const pad = (value: number): string => value.toString().padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
}

/** Seconds that a countdown shows: what has begun counts, and 0 is shown only at the end. */
export function secondsLeft(ms: number): number {
  return Math.ceil(ms / 1000);
}
