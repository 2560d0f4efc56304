// One session from open to close with @rgs/client: a round of Casino Hold'em.
//
//     node first_round.mjs HOST:PORT CA.pem CLIENT.pem CLIENT.key
//
// It plays in both ways of funding: an operator in participation mode buys first, a seamless one has each bet debited.
// A request without an answer is repeated under its id, and this says so. docs/sdk.md explains the parts.
import { readFileSync } from "node:fs";
import { Action, BetResult, connect, Funding, newRequestId, RgsError, RoundStatus } from "@rgs/client";

const [address, ca, certificate, key] = process.argv.slice(2);
if (key === undefined) {
  console.error("node first_round.mjs HOST:PORT CA.pem CLIENT.pem CLIENT.key");
  process.exit(2);
}
const rgs = connect({
  address,
  ca: readFileSync(ca),
  certificate: readFileSync(certificate),
  key: readFileSync(key),
  beforeSend: ({ method, requestId }) => console.log(`  ${requestId}  ${method}`), // a real client stores them here
  onRepeat: (_method, requestId, error) => console.log(`  ${requestId}  again, because: ${error.message} [${error.reason}]`),
});

try {
  const opened = await rgs.sessions.openSession({
    game: "casino-holdem",
    player: "node-player",
    currency: "EUR",
    operatorReference: newRequestId(),
  });
  let session = opened.session;
  const { sessionId } = session;
  if (session.funding === Funding.PARTICIPATION) {
    const purchase = { sessionId, purchaseNo: session.nextPurchaseNo, amountMinor: 50_00n };
    ({ session } = await rgs.sessions.buyParticipation(purchase));
  }
  let { round } = await rgs.play.startRound({
    sessionId,
    roundNo: session.nextRoundNo,
    bets: [{ bet: "ante", amountMinor: 1_00n }],
  });
  console.log(`round ${round.gameCode}: ${round.holeCards.join(" ")} on ${round.board.join(" ")}`);
  while (round.status === RoundStatus.OPEN) {
    const { roundId, roundVersion } = round;
    ({ session, round } = await rgs.play.act({ sessionId, roundId, roundVersion, action: Action.CALL }));
  }
  console.log(`board ${round.board.join(" ")}, dealer ${round.dealerCards.join(" ")}`);
  for (const bet of round.settlement) {
    console.log(`${bet.bet}: ${euro(bet.stakeMinor)} staked, ${BetResult[bet.result]}, ${euro(bet.returnedMinor)} back`);
  }
  if (session.funding === Funding.PARTICIPATION) await rgs.sessions.endParticipation({ sessionId });
  await rgs.sessions.closeSession({ sessionId });
} catch (error) {
  if (!(error instanceof RgsError)) throw error;
  console.error(`${error}, request ${error.requestId}, ${JSON.stringify(error.metadata)}`);
  process.exitCode = 1;
} finally {
  rgs.close();
}

/** Minor units as text, without a float. */
function euro(minor) {
  return `${minor / 100n}.${String(minor % 100n).padStart(2, "0")} EUR`;
}
