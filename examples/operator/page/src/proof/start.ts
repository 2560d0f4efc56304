/** The worker's address, as a trusted script of this page's own origin (Trusted Types). */

import address from "./worker.ts?worker&url";

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

let trusted: unknown;

export function workerUrl(): unknown {
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  if (!policies) return address;
  trusted ??= policies
    .createPolicy("page", {
      createScriptURL: (url) => {
        if (url !== address) throw new TypeError(`not this page's worker: ${url}`);
        return url;
      },
    })
    .createScriptURL(address);
  return trusted;
}
