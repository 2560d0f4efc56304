/** Ids of regulator and wallet, each for one thing (check 23). */

import { demand } from "../checks.js";
import { text, textOr, type JsonObject } from "../json.js";
import type { Statement } from "../statements.js";
import type { Session } from "./state.js";

const PLAY_MONEY = "PLAY_MONEY";
const OUTSIDE = ["regulator", "regulator_session_id", "regulator_participation_id", "wallet_transaction_id"];

export class Ids {
  /** How many blocks were erased in which an id of the regulator is required. */
  absent = 0;
  private readonly participations = new Set<string>();
  private readonly transactions = new Set<string>();
  private readonly grants = new Set<string>();
  /** The regulator's ids of sessions, by themselves and with the table at which they were named. */
  private readonly sessions = new Set<string>();
  /** The regulator's ids of participations. */
  private readonly named = new Set<string>();

  /** `isFirst`: the session had no participation before this statement. */
  check({ kind, body }: Statement, session: Session, block: JsonObject | null, isFirst: boolean): void {
    if (kind.name === "free_bet" && text(body, "direction") === "debit") {
      const grant = text(body, "grant_id");
      demand(isAdded(this.grants, grant), 23, `the free bet ${grant} has paid for a round before`);
    }
    if (kind.name === "transfer" || kind.name === "free_bet") this.transaction(text(body, "transaction_id"));
    if (!kind.hasPrivate) return;
    const requires = (session.jurisdiction?.requiresIds ?? false) && session.isDemo !== true;
    if (kind.name === "purchase" && isFirst) {
      const participation = text(body, "participation_id");
      const isNew = isAdded(this.participations, participation);
      demand(isNew, 23, `participation ${participation} is another session's`);
    }
    if (!block && requires) this.absent += 1;
    if (!block) return;
    if (kind.name === "session_open") {
      if (session.isDemo) demandPlayMoney(block, "");
      else {
        demand(textOr(block, "reason") !== PLAY_MONEY, 23, "the reason PLAY_MONEY in a session that is not played with it");
        this.session(body, session, block, requires);
      }
      return;
    }
    const reason = textOr(block, "reason");
    if (session.isDemo === null && reason === PLAY_MONEY) session.isDemo = true;
    if (session.isDemo) return demandPlayMoney(block, PLAY_MONEY);
    demand(reason === "", 23, `the reason ${reason}, which only a session with play money has`);
    this.participation(session, block, requires);
  }

  private transaction(id: string): void {
    demand(isAdded(this.transactions, id), 23, `transaction ${id} was named before`);
  }

  private session(body: JsonObject, session: Session, block: JsonObject, requires: boolean): void {
    const [id, regulator] = [textOr(block, "regulator_session_id"), textOr(block, "regulator")];
    demand(id !== "" || !requires, 23, "no regulator_session_id, which the jurisdiction requires");
    demand((id !== "") === (regulator !== ""), 23, `regulator_session_id ${id || "none"} of regulator ${regulator || "nobody"}`);
    const isTest = body["test_regulator"] === true;
    const agrees = regulator === "" ? !isTest : isTest === (regulator === "test-regulator");
    demand(agrees, 23, `test_regulator is ${isTest}, the regulator is ${regulator || "none"}`);
    if (id === "") return;
    const isShared = (session.table ?? "") !== "" && session.ruleset?.maxSeats !== 1n;
    const isNew = isAdded(this.sessions, id);
    const isFirstThere = isShared && isAdded(this.sessions, `${id} ${session.table}`);
    demand(isNew || (isShared && !isFirstThere), 23, `regulator_session_id ${id} is that of a session that is not at this table`);
  }

  private participation(session: Session, block: JsonObject, requires: boolean): void {
    const transaction = textOr(block, "wallet_transaction_id");
    const id = textOr(block, "regulator_participation_id");
    const before = session.regulatorParticipation;
    session.regulatorParticipation = id;
    demand(id !== "" || !requires, 23, "no regulator_participation_id, which the jurisdiction requires");
    demand(before === null || before === id, 23, `regulator_participation_id ${id || "none"}, the participation's is ${before || "none"}`);
    const isNew = before !== null || id === "" || isAdded(this.named, id);
    demand(isNew, 23, `regulator_participation_id ${id} is another participation's`);
    demand(transaction !== "", 23, "no wallet_transaction_id");
    this.transaction(transaction);
  }
}

/** Nobody outside has an id of a session with play money; the block of a purchase or an end says why. */
function demandPlayMoney(block: JsonObject, due: string): void {
  for (const name of OUTSIDE) demand(textOr(block, name) === "", 23, `${name} in a session with play money`);
  const reason = textOr(block, "reason");
  demand(reason === due, 23, `the reason ${reason || "none"} where ${due || "none"} is due`);
}

/** Adds an id. Whether it was not there. */
function isAdded(ids: Set<string>, id: string): boolean {
  const isNew = !ids.has(id);
  ids.add(id);
  return isNew;
}
