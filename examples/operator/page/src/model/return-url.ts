/** The address of the operator to which the page leads back. */

const LENGTH_MAX = 1024;
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const REST = "(?::[1-9][0-9]{0,4})?(?:[/?][A-Za-z0-9._~:/?\\[\\]@!$&'()*+,;=%-]*)?";
const ALLOWED = new RegExp(`^(?:https://${LABEL}(?:\\.${LABEL})*|http://localhost)${REST}$`);

/** The address, if it is one that the game server takes: https, or http on this machine, without user and fragment. */
export function returnUrlOf(text: string | undefined): string | undefined {
  return text && text.length <= LENGTH_MAX && ALLOWED.test(text) ? text : undefined;
}
