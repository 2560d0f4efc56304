/** The reply to a start is lost on the way. The client repeats it under the same id: it has one effect. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Intent, newRequestId, type Rgs, type StartRoundResponse } from "../src/index.js";
import { bought, connected, connection } from "./around.js";
import { Proxy } from "./proxy.js";

type Start = (rgs: Rgs, request: object) => Promise<StartRoundResponse>;

async function losesOneReply(start: Start): Promise<void> {
  const direct = connection();
  const proxy = await Proxy.before(direct.address);
  const intents: Intent[] = [];
  const repeats: string[] = [];
  const rgs = connect({
    ...direct,
    address: proxy.address,
    beforeSend: (intent) => void intents.push(intent),
    onRepeat: (_method, requestId) => void repeats.push(requestId),
  });
  try {
    await connected(async (witness) => {
      const session = await bought(rgs, "uth-solo");
      const requestId = newRequestId();
      const answer = start(rgs, {
        requestId,
        sessionId: session.sessionId,
        roundNo: session.nextRoundNo,
        bets: [{ bet: "ante", amountMinor: 5_00n }],
      });
      answer.catch(() => undefined); // awaited below
      const held = proxy.hold();
      // The server has dealt: another connection sees the round, and the client does not.
      let dealt = "";
      while (dealt === "") {
        dealt = (await witness.sessions.getSession({ sessionId: session.sessionId })).session!.openRound?.roundId ?? "";
      }
      await held;
      proxy.cut();
      const { round, session: after, opening } = await answer;
      assert.equal(round!.roundId, dealt);
      assert.equal(after!.balanceMinor, 90_00n); // ante and blind, once
      assert.ok(repeats.includes(requestId));
      assert.equal(intents.filter((intent) => intent.requestId === requestId).length, 1);
      assert.ok(proxy.connections >= 2);
      const now = await witness.sessions.getSession({ sessionId: session.sessionId });
      assert.equal(now.session!.nextRoundNo, 2n);
      assert.equal(now.session!.balanceMinor, 90_00n);
      assert.deepEqual(now.opening, opening); // the stored answer, byte for byte
    });
  } finally {
    rgs.close();
    proxy.close();
  }
}

test("a lost reply to a unary start", () => losesOneReply((rgs, request) => rgs.play.startRound(request)));

test("a lost reply to a start on the stream", () =>
  losesOneReply(async (rgs, request) => {
    const stream = rgs.playStream();
    try {
      return await stream.startRound(request);
    } finally {
      stream.close();
    }
  }));
