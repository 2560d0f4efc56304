/** Solo rounds on the Play stream, what comes on it unrequested, and a stream that is cut between two questions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, RgsError, RoundStatus, type SessionUpdate } from "../src/index.js";
import { bought, connection, decision } from "./around.js";
import { Proxy } from "./proxy.js";

test("a session that somebody else changes is told, and is no answer", async () => {
  const rgs = connect(connection());
  const updates: SessionUpdate[] = [];
  let told: (() => void) | undefined;
  const stream = rgs.playStream({
    onUpdate: (update) => {
      updates.push(update);
      told?.();
    },
  });
  try {
    const { sessionId, nextRoundNo: roundNo } = await bought(rgs, "casino-holdem");
    const started = await stream.startRound({ sessionId, roundNo, bets: [{ bet: "ante", amountMinor: 1_00n }] });
    const { roundId, roundVersion } = started.round!;
    const action = decision(started.round!);
    const [acted] = await Promise.all([
      rgs.play.act({ sessionId, roundId, roundVersion, action }), // not on the stream
      ...Array.from({ length: 20 }, () => stream.getRound({ sessionId, roundId })),
    ]);
    while (updates.at(-1)?.lastRound?.roundId !== roundId) await new Promise<void>((resolve) => (told = resolve));
    const { session, final } = updates.at(-1)!;
    assert.equal(session!.balanceMinor, acted.session!.balanceMinor);
    assert.deepEqual(final, acted.final);
  } finally {
    stream.close();
    rgs.close();
  }
});

test("rounds on the stream, which goes on over a cut", async () => {
  const direct = connection();
  const proxy = await Proxy.before(direct.address);
  const rgs = connect({ ...direct, address: proxy.address });
  const stream = rgs.playStream();
  try {
    let session = await bought(rgs, "casino-holdem");
    for (let played = 0; played < 3; played++) {
      const started = await stream.startRound({
        sessionId: session.sessionId,
        roundNo: session.nextRoundNo,
        bets: [{ bet: "ante", amountMinor: 1_00n }],
      });
      if (played === 1) proxy.cut();
      const [acted, shown] = await Promise.all([
        stream.act({
          sessionId: session.sessionId,
          roundId: started.round!.roundId,
          roundVersion: started.round!.roundVersion,
          action: decision(started.round!),
        }),
        stream.getRound({ sessionId: session.sessionId, roundId: started.round!.roundId }),
      ]);
      assert.notEqual(acted.round!.status, RoundStatus.OPEN);
      assert.deepEqual(shown.opening, started.opening);
      session = acted.session!;
    }
    assert.equal(session.nextRoundNo, 4n);
    await assert.rejects(
      () => stream.getRound({ sessionId: session.sessionId, roundId: "no such round" }),
      (error: unknown) => error instanceof RgsError && ["NOT_FOUND", "INVALID_FIELD"].includes(error.reason),
    );
    assert.ok(proxy.connections >= 2);
  } finally {
    stream.close();
    rgs.close();
    proxy.close();
  }
});
