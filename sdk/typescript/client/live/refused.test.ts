/** Refusals: a bet above the limit, in a unary call and in band on the stream; an intent that could not be stored. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, OutcomeUnknownError, RgsError } from "../src/index.js";
import { bought, connected } from "./around.js";

test("a refused bet says its reason", async () => {
  let repeats = 0;
  await connected(
    async (rgs) => {
      const session = await bought(rgs, "uth-solo");
      const { game } = await rgs.catalog.getGame({ rulesetId: "uth-solo" });
      const limit = game!.limits.find(({ bet }) => bet === "ante")!.maxMinor;
      const request = {
        sessionId: session.sessionId,
        roundNo: session.nextRoundNo,
        bets: [{ bet: "ante", amountMinor: limit + 2n }],
      };
      const stream = rgs.playStream();
      try {
        for (const start of [() => rgs.play.startRound(request), () => stream.startRound(request)]) {
          await assert.rejects(start, (error: unknown) => {
            assert.ok(error instanceof RgsError && !(error instanceof OutcomeUnknownError));
            assert.equal(error.reason, "STAKE_ABOVE_MAXIMUM");
            assert.equal(error.code, Code.INVALID_ARGUMENT);
            assert.equal(error.metadata["limit"], String(limit));
            assert.equal(error.metadata["value"], String(limit + 2n));
            assert.notEqual(error.requestId, "");
            assert.equal(error.violations.length, 1);
            return true;
          });
        }
      } finally {
        stream.close();
      }
      assert.equal((await rgs.sessions.getSession({ sessionId: session.sessionId })).session!.nextRoundNo, 1n);
    },
    { onRepeat: () => void repeats++ },
  );
  assert.equal(repeats, 0);
});

test("an intent that cannot be stored is not sent", async () => {
  let player = "";
  await connected(
    async (rgs) => {
      const request = { game: "uth-solo", player: "not-stored", currency: "EUR", operatorReference: "not-stored" };
      player = request.player;
      await assert.rejects(() => rgs.sessions.openSession(request), /the disk is full/);
    },
    {
      beforeSend: () => {
        throw new Error("the disk is full");
      },
    },
  );
  await connected(async (rgs) => {
    assert.deepEqual((await rgs.sessions.listSessions({ player })).sessions, []);
  });
});
