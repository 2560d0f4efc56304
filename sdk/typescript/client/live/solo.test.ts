/** A solo round from the first call to the last, by unary calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, type Intent, OpenSessionRequestSchema, RoundStatus, SessionStatus } from "../src/index.js";
import { bought, connected, decision } from "./around.js";

test("a solo round by unary calls", async () => {
  const intents: Intent[] = [];
  await connected(
    async (rgs) => {
      const { games } = await rgs.catalog.listGames({});
      const ante = games.find((game) => game.ruleset!.id === "uth-solo")!.limits.find((limit) => limit.bet === "ante")!;
      assert.equal(typeof ante.minMinor, "bigint");
      let session = await bought(rgs, "uth-solo");
      let { round, opening, session: after } = await rgs.play.startRound({
        sessionId: session.sessionId,
        roundNo: session.nextRoundNo,
        bets: [{ bet: "ante", amountMinor: ante.minMinor }],
      });
      assert.ok(opening.length > 0);
      let final: Uint8Array = new Uint8Array();
      while (round!.status === RoundStatus.OPEN) {
        const acted = await rgs.play.act({
          sessionId: session.sessionId,
          roundId: round!.roundId,
          roundVersion: round!.roundVersion,
          action: decision(round!),
        });
        ({ round, session: after, final } = acted);
      }
      assert.ok(final.length > 0);
      assert.equal(after!.balanceMinor, after!.boughtMinor - after!.stakedMinor + after!.returnedMinor);
      const { sessionId } = session;
      ({ session } = (await rgs.sessions.endParticipation({ sessionId })) as { session: typeof session });
      assert.equal(session.paidOutMinor, after!.balanceMinor);
      assert.equal((await rgs.sessions.closeSession({ sessionId })).session!.status, SessionStatus.CLOSED);
      const { rounds } = await rgs.history.listRounds({ player: session.player });
      assert.deepEqual(rounds.map((row) => row.roundId), [round!.roundId]);
    },
    { beforeSend: (intent) => void intents.push(intent), channels: 2 },
  );
  // Everything that changes something was announced, each under an id of its own; reads were not.
  const names = intents.map(({ method }) => method.split("/")[2]);
  assert.deepEqual(names.slice(0, 3), ["OpenSession", "BuyParticipation", "StartRound"]);
  assert.deepEqual(names.slice(-2), ["EndParticipation", "CloseSession"]);
  assert.equal(new Set(intents.map(({ requestId }) => requestId)).size, intents.length);
  assert.ok(!names.includes("ListGames"));
});

test("a stored intent is sent again after the program has died", async () => {
  const stored: Intent[] = [];
  const request = { game: "uth-solo", player: "dies", currency: "EUR", operatorReference: "dies-1" };
  let first = "";
  await connected(
    async (rgs) => {
      first = (await rgs.sessions.openSession(request)).session!.sessionId;
      const other = await rgs.sessions.openSession({ ...request, operatorReference: "dies-2" }); // another intent
      assert.notEqual(other.session!.sessionId, first);
    },
    { beforeSend: (intent) => void stored.push(intent) },
  );
  assert.equal("requestId" in request, false); // the caller's object is as it was
  await connected(async (rgs) => {
    const again = fromBinary(OpenSessionRequestSchema, stored[0]!.request);
    assert.equal(again.requestId, stored[0]!.requestId);
    assert.equal((await rgs.sessions.openSession(again)).session!.sessionId, first);
    assert.equal((await rgs.sessions.listSessions({ player: "dies" })).sessions.length, 2);
  });
});
