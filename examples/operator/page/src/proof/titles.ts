/** What a step is called: by what was really looked at. */

import type { Answer, Step } from "./protocol.js";

/** Under this name a step shows a root that nobody has confirmed. */
const FIRST_SEEN = "first_seen";

/** The key of the page's words for a step. */
export function titleKey({ name, verdict, looked }: Step): string {
  if (name === "root" && FIRST_SEEN in looked) return "step.root_first";
  if (name === "root" && verdict === "unpinned") return "step.root_none";
  // Without a path the root over the seats is the hash of the one seat.
  if (name === "path" && looked["path"] === "") return "step.path_alone";
  return `step.${name}`;
}

/** An answer about keys that lead to the root that this browser saw first: it is that one, and nobody has vouched for it. */
export function unconfirmed<Found extends Pick<Answer, "steps">>(found: Found, firstSeen: string): Found & { anchored: boolean } {
  const steps = found.steps.map((step): Step => {
    if (step.name !== "root") return step;
    const { root = "" } = step.looked;
    return { ...step, verdict: step.verdict === "ok" ? "unpinned" : step.verdict, looked: { root, [FIRST_SEEN]: firstSeen } };
  });
  return { ...found, anchored: false, steps };
}
