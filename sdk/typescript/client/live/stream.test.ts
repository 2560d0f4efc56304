/** Solo rounds on the Play stream, and a stream that is cut between a question and the next. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, RgsError, RoundStatus } from "../src/index.js";
import { bought, connection, decision } from "./around.js";
import { Proxy } from "./proxy.js";

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
