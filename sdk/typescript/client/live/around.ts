/** What the live tests share: the connection that the environment names, and a session that can be played. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, type Connection, newRequestId, type Rgs, type RoundView, type SessionView } from "../src/index.js";

/** The settings for the server that tests/sdk/test_client.py has started. */
export function connection(more: Partial<Connection> = {}): Connection {
  const of = (name: string): string => {
    const value = process.env[name];
    if (value === undefined) throw new Error(`${name} is not set: tests/sdk/test_client.py runs these tests`);
    return value;
  };
  return {
    address: of("RGS_ADDRESS"),
    ca: readFileSync(of("RGS_CA")),
    certificate: readFileSync(of("RGS_CERTIFICATE")),
    key: readFileSync(of("RGS_KEY")),
    ...more,
  };
}

/** Run with a connection, and close it. */
export async function connected(run: (rgs: Rgs) => Promise<void>, more: Partial<Connection> = {}): Promise<void> {
  const rgs = connect(connection(more));
  try {
    await run(rgs);
  } finally {
    rgs.close();
  }
}

/** A session with a participation of 100.00 EUR. */
export async function bought(rgs: Rgs, game: string, table = ""): Promise<SessionView> {
  const opened = await rgs.sessions.openSession({
    game,
    table,
    player: `node-${newRequestId().slice(-8)}`,
    currency: "EUR",
    operatorReference: newRequestId(),
  });
  const { session } = await rgs.sessions.buyParticipation({
    sessionId: opened.session!.sessionId,
    purchaseNo: opened.session!.nextPurchaseNo,
    amountMinor: 100_00n,
  });
  assert.equal(session!.balanceMinor, 100_00n);
  return session!;
}

/** The decision that is always there: the first available one that costs nothing, else the first available. */
export function decision(round: RoundView) {
  const open = round.legalActions.filter((legal) => legal.available);
  return (open.find((legal) => legal.costMinor === 0n) ?? open[0])!.action;
}
