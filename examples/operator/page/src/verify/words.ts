/** The words that only verify.html has. */

import { scanWords } from "./scan-words.js";

const en = {
  title: "Verify a round",
  intro:
    "Choose the receipt or the dispute of a round. This page recomputes everything from the signed statements in it, on this device; it sends nothing anywhere. Whoever hosts it can be somebody other than the house.",
  root_help: "From the regulator, a lab or somebody else whom you trust. Without it the page cannot say whose keys these are.",
  ...scanWords.en,
  log: "The log: whom you trust about it",
  policy: "Policy (C2SP tlog-policy)",
  policy_help: "The keys of the log and of its witnesses, from somebody whom you trust. Without it the page only recomputes that the round is in the log's tree.",
  log_none: "The file has no proof that the log includes the round. The log takes about a second: a later receipt has it.",
  log_ok: "The log includes the round, and witnesses whom your policy names have seen that log.",
  log_self: "The log includes the round. The policy's witnesses are the house's own: nobody else has seen that log.",
  log_unpinned: "The round is in the tree that the file's checkpoint names. Nobody whom you trust has vouched for that checkpoint.",
  log_failed: "The proof of the log does not hold.",
  file: "Receipt (.json) or dispute (.zip)",
  too_large: "The file has more than 16 MiB: it is no receipt.",
  no_receipt: "This is no receipt or dispute that the page knows:",
  unknown_kind: "The file has a statement of a kind that this page does not know. Nothing is said for or against the round.",
  open: "What is there verifies, and the round's end is missing.",
  anchored: "The keys lead to the root that you typed.",
  unanchored: "The root is not confirmed: compare this fingerprint with one that you got another way.",
};

export type OwnKey = keyof typeof en;

const it: Record<OwnKey, string> = {
  title: "Verifica una partita",
  intro:
    "Scegli la ricevuta o il fascicolo di una partita. Questa pagina ricalcola tutto dalle dichiarazioni firmate che contiene, su questo dispositivo; non invia niente. Può ospitarla anche chi non è la casa.",
  root_help: "Dal regolatore, da un laboratorio o da altri di cui ti fidi. Senza, la pagina non può dire di chi sono le chiavi.",
  ...scanWords.it,
  log: "Il registro: di chi ti fidi",
  policy: "Policy (C2SP tlog-policy)",
  policy_help: "Le chiavi del registro e dei suoi testimoni, da qualcuno di cui ti fidi. Senza, la pagina ricalcola soltanto che la partita è nell'albero del registro.",
  log_none: "Il file non ha la prova che il registro contiene la partita. Il registro impiega circa un secondo: una ricevuta successiva la ha.",
  log_ok: "Il registro contiene la partita, e i testimoni della tua policy hanno visto quel registro.",
  log_self: "Il registro contiene la partita. I testimoni della policy sono della casa: nessun altro ha visto quel registro.",
  log_unpinned: "La partita è nell'albero che il checkpoint del file indica. Nessuno di cui ti fidi ha garantito per quel checkpoint.",
  log_failed: "La prova del registro non regge.",
  file: "Ricevuta (.json) o fascicolo (.zip)",
  too_large: "Il file ha più di 16 MiB: non è una ricevuta.",
  no_receipt: "Non è una ricevuta o un fascicolo che la pagina conosce:",
  unknown_kind: "Il file ha una dichiarazione di un tipo che questa pagina non conosce. Non si dice niente per o contro la partita.",
  open: "Quello che c'è si verifica, e manca la fine della partita.",
  anchored: "Le chiavi portano alla radice che hai scritto.",
  unanchored: "La radice non è confermata: confronta questa impronta con una avuta per altra via.",
};

const de: Record<OwnKey, string> = {
  title: "Eine Runde prüfen",
  intro:
    "Wählen Sie den Beleg oder das Streitdossier einer Runde. Diese Seite rechnet alles aus den signierten Erklärungen darin nach, auf diesem Gerät; sie sendet nichts. Auch wer nicht das Haus ist, kann sie anbieten.",
  root_help: "Von der Aufsichtsbehörde, einem Prüflabor oder jemandem, dem Sie trauen. Ohne ihn kann die Seite nicht sagen, wessen Schlüssel es sind.",
  ...scanWords.de,
  log: "Das Log: wem Sie dabei trauen",
  policy: "Policy (C2SP tlog-policy)",
  policy_help: "Die Schlüssel des Logs und seiner Zeugen, von jemandem, dem Sie trauen. Ohne sie rechnet die Seite nur nach, dass die Runde im Baum des Logs steht.",
  log_none: "Die Datei hat keinen Nachweis, dass das Log die Runde enthält. Das Log braucht etwa eine Sekunde: ein späterer Beleg hat ihn.",
  log_ok: "Das Log enthält die Runde, und Zeugen, die Ihre Policy nennt, haben dieses Log gesehen.",
  log_self: "Das Log enthält die Runde. Die Zeugen der Policy gehören dem Haus: sonst hat niemand dieses Log gesehen.",
  log_unpinned: "Die Runde steht in dem Baum, den der Checkpoint der Datei nennt. Niemand, dem Sie trauen, steht für diesen Checkpoint ein.",
  log_failed: "Der Nachweis des Logs hält nicht stand.",
  file: "Beleg (.json) oder Streitdossier (.zip)",
  too_large: "Die Datei hat mehr als 16 MiB: sie ist kein Beleg.",
  no_receipt: "Das ist kein Beleg oder Streitdossier, das die Seite kennt:",
  unknown_kind: "Die Datei hat eine Erklärung von einer Art, die diese Seite nicht kennt. Über die Runde ist nichts gesagt, weder dafür noch dagegen.",
  open: "Was da ist, hält der Prüfung stand, und das Ende der Runde fehlt.",
  anchored: "Die Schlüssel führen zur Wurzel, die Sie eingegeben haben.",
  unanchored: "Die Wurzel ist nicht bestätigt: vergleichen Sie diesen Fingerabdruck mit einem, den Sie auf anderem Weg haben.",
};

export const own: Record<string, Record<OwnKey, string>> = { en, it, de };
