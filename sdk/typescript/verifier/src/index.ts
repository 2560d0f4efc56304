/** The verifier: signed rounds of the remote game server, verified from bytes alone. */

export { CHECKS, Fault, type CheckNo } from "./checks.js";
export { verifyExport, type ExportOptions, type ExportReport, type Failure } from "./export.js";
export { KeyBook } from "./keys.js";
export { Rulebook, RulesError } from "./rules.js";
export { verifyRound, type RoundInput, type RoundOptions, type RoundReport, type Step, type StepVerdict } from "./round.js";
export { STEPS, type Looked, type StepName } from "./trace.js";
export { parseSavedReceipt, RECEIPT_FORMAT, SavedFileError, verifyDispute, verifySavedReceipt, type DisputeReport } from "./saved.js";
export { verifyReceipt, type ReceiptInput, type ReceiptReport } from "./receipt.js";
export { extendsCheckpoint, parseLogProof, parsePolicy, verifyCheckpoint, verifyInclusion } from "./log.js";
export type { Inclusion, LogProof, Policy, WitnessedCheckpoint } from "./log.js";
export { LogError, parseCheckpoint, parseNote, type Checkpoint, type Note } from "./note.js";
