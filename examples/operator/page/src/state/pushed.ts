/** What the bridge says unasked. */

import type { Message } from "../model/connection.js";
import type { ChatLine, RoundView, SeatView, SessionView, TableEntry, TableView } from "../model/types.js";
import type { RealityCheck } from "./reality.js";
import { settingsOf } from "./settings.js";
import type { Store } from "./store.js";

export function pushed(store: Store, message: Message): void {
  const { type, value } = message;
  switch (type) {
    case "session": {
      const session = value as SessionView;
      store.playOf(session.session_id)?.take({ session });
      break;
    }
    case "round":
      store.playOf(String(message["session_id"] ?? ""))?.take({ round: value as RoundView });
      break;
    case "table": {
      const table = value as TableView;
      for (const play of store.tables) if (play.tableId === table.table) play.takeTable(table);
      break;
    }
    case "seat": {
      const seat = value as SeatView;
      store.tables.find((play) => play.id === seat.session_id)?.takeSeat(seat);
      break;
    }
    case "line": {
      const line = value as ChatLine;
      for (const play of store.tables) if (play.tableId === line.table) play.takeLine(line);
      break;
    }
    case "line_hidden":
      for (const play of store.tables) play.lines = play.lines.filter((line) => line.message_id !== message["message_id"]);
      break;
    case "lobby":
      store.lobby = merged(store.lobby, value as TableEntry[]);
      break;
    case "settings":
      void store.useSettings(settingsOf(settingsIn(value)));
      break;
    case "limits":
    case "balance":
      void store.refreshMe();
      break;
    case "free_bets":
      void store.freeBets.load();
      break;
    case "reality_check":
      store.realityChecks.tell(value as RealityCheck);
      break;
    case "reality_check_seen":
      store.realityChecks.drop((value as { session_id: string }).session_id);
      break;
    case "excluded":
      store.endCode = 4001;
      store.link.stop();
      store.go("ended");
      break;
    case "restart":
      void store.restarted();
      break;
  }
  store.emit();
}

/** The lobby pushes the tables that have changed. */
function merged(known: TableEntry[], news: TableEntry[]): TableEntry[] {
  const rest = known.filter((entry) => !news.some((each) => each.table === entry.table));
  return [...rest, ...news].sort((one, other) => one.table.localeCompare(other.table));
}

function settingsIn(value: unknown): Record<string, unknown> {
  const { settings } = (value ?? {}) as { settings?: Record<string, unknown> };
  return settings ?? ((value ?? {}) as Record<string, unknown>);
}
