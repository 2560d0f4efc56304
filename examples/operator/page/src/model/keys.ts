/** The keys of the table (F-4): from a key event to what it asks for. */

export type Command =
  | { does: "chip"; index: number }
  | { does: "space" }
  | { does: "undo" }
  | { does: "clear" }
  | { does: "escape" };

export interface KeyPress {
  key: string;
  ctrl: boolean;
  meta: boolean;
  alt: boolean;
  repeat: boolean;
  /** Whether the focus is where the key means something else: a field, a button (space presses it). */
  typing: boolean;
  onButton: boolean;
}

/** Held so long, Delete clears all bets. */
export const CLEAR_AFTER_MS = 3000;

export function commandOf(press: KeyPress): Command | undefined {
  if (press.key === "Escape") return { does: "escape" };
  if (press.typing || press.alt) return undefined;
  if ((press.ctrl || press.meta) && press.key.toLowerCase() === "z") return press.repeat ? undefined : { does: "undo" };
  if (press.ctrl || press.meta) return undefined;
  if (/^[1-9]$/.test(press.key)) return { does: "chip", index: Number(press.key) - 1 };
  if (press.key === " " && !press.onButton && !press.repeat) return { does: "space" };
  return undefined;
}

/** Delete undoes on release, and clears once it was held for 3 s. */
export class DeleteKey {
  private timer: unknown;
  private cleared = false;

  constructor(
    private readonly say: (command: Command) => void,
    private readonly timers: { set(run: () => void, ms: number): unknown; clear(timer: unknown): void },
  ) {}

  down(): void {
    if (this.timer !== undefined) return;
    this.cleared = false;
    this.timer = this.timers.set(() => {
      this.cleared = true;
      this.say({ does: "clear" });
    }, CLEAR_AFTER_MS);
  }

  up(): void {
    if (this.timer === undefined) return;
    this.timers.clear(this.timer);
    this.timer = undefined;
    if (!this.cleared) this.say({ does: "undo" });
  }
}
