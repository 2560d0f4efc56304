/** What a cut export holds (docs/formats.md 12): ranges of instances and sessions, check 22. */

import { demand } from "../checks.js";
import { objectsAt, text, whole } from "../json.js";
import type { Statement } from "../statements.js";

interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

export class Scopes {
  isCut: boolean;
  /** A numbered statement besides an instance_start was read. */
  hasBegun = false;
  readonly instances = new Map<string, Range[]>();
  readonly sessions = new Map<string, Range[]>();

  /** `isPartial`: some statements of rounds, of which no scope says what is held. */
  constructor(private readonly isPartial = false) {
    this.isCut = isPartial;
  }

  /** `seen` says whether a name has shown a statement from a number on. */
  take({ body }: Statement, seen: (name: string, isSession: boolean, first: bigint) => boolean): void {
    // What was read is in no range of it. It must not excuse what is missing in whole files.
    demand(this.isCut || !this.hasBegun, 22, "the first scope stands behind numbered statements");
    this.isCut = true;
    for (const [key, name, ranges] of [
      ["instances", "instance", this.instances],
      ["sessions", "session_id", this.sessions],
    ] as const) {
      for (const one of objectsAt(body, key)) {
        const [id, first, last] = [text(one, name), whole(one, "first"), whole(one, "last")];
        const before = ranges.get(id) ?? [];
        const previous = before[before.length - 1];
        demand(first <= last, 22, `the range ${first}..${last} of ${id} ends before it begins`);
        demand(!previous || first > previous.last, 22, `the range ${first}..${last} of ${id} does not rise above the one before`);
        demand(!seen(id, key === "sessions", first), 22, `the scope of ${id} stands behind what it names`);
        ranges.set(id, [...before, { first, last }]);
      }
    }
  }

  /** Whether all statements of an instance up to any that the files hold are there too. */
  showsBeginning(instance: string): boolean {
    const ranges = this.instances.get(instance) ?? [];
    return !this.isCut || (this.sessions.size === 0 && ranges.length === 1 && ranges[0]!.first === 1n);
  }

  /** Check 22 of a numbered statement. */
  checkInside({ kind, body }: Statement): void {
    if (!this.isCut || this.isPartial || !kind.numbered || kind.name === "instance_start") return;
    const inside = (ranges: Range[] | undefined, no: bigint): boolean =>
      (ranges ?? []).some(({ first, last }) => no >= first && no <= last);
    const isNamed =
      inside(this.instances.get(text(body, "instance")), whole(body, "statement_no")) ||
      (kind.linked && inside(this.sessions.get(text(body, "session_id")), whole(body, "link_no")));
    demand(isNamed, 22, `${kind.name} is in no range of the export's scope`);
  }
}

/** Whether a number may follow `last`: the next one, or in cut files the beginning of a range. */
export function mayFollow(
  no: bigint,
  last: bigint,
  scope: { readonly isCut: boolean; readonly ranges: readonly Range[] | undefined; readonly fromOne: boolean },
): boolean {
  if (no === last + 1n) return true;
  if (no <= last || !scope.isCut) return false;
  if (!scope.ranges) return true;
  const place = scope.ranges.findIndex((range) => range.first === no);
  if (place < 0) return false;
  return place === 0 ? last === 0n || (scope.fromOne && last === 1n) : last === scope.ranges[place - 1]!.last;
}
