/** The proof of one round: the verdict in a sentence, each step with the bytes that were compared, and the pinned root. */

import { css, html, nothing, type TemplateResult } from "lit";

import { skippedKey } from "../proof/skipped.js";
import { titleKey } from "../proof/titles.js";
import type { Proof } from "../state/proofs.js";
import type { WordKey } from "../words/index.js";
import { define, shared, StoreElement } from "./base.js";

const MARKS = { ok: "✓", failed: "✗", unpinned: "?", skipped: "–" };

export class ProofElement extends StoreElement {
  static override properties = {
    ...StoreElement.properties,
    roundId: { attribute: false },
    sessionId: { attribute: false },
    wrong: { state: true },
  };
  roundId = "";
  sessionId = "";
  private wrong = "";
  /** The camera's field, once somebody wants it. */
  private scanner: HTMLElement | undefined;
  private stopScan: (() => void) | undefined;

  static override styles = [
    shared,
    css`
      .verdict {
        font-weight: 700;
        font-size: 1.05rem;
      }
      .failed {
        border-left: 0.3rem solid var(--red);
        padding-left: 0.75rem;
      }
      summary {
        cursor: pointer;
        padding: 0.35rem 0;
        font-weight: 600;
      }
      .step dl {
        display: grid;
        gap: 0.15rem;
        margin: 0 0 0.5rem 1rem;
      }
      .step dt {
        color: var(--muted);
        font-size: 0.8125rem;
      }
      form {
        display: flex;
        flex-wrap: wrap;
        gap: 0.5rem;
        align-items: end;
      }
      label {
        flex: 1 1 16rem;
        display: grid;
      }
      p a {
        display: inline-block;
        padding: 0.4rem 0;
      }
      label input {
        width: 100%;
        font-family: ui-monospace, monospace;
      }
    `,
  ];

  protected override firstUpdated(): void {
    if (this.sessionId) void this.store.proofs.verify(this.roundId, this.sessionId);
  }

  protected override render(): unknown {
    const { store } = this;
    const proof = store.proofs.of(this.roundId);
    return html`<div class="stack" data-proof=${proof?.state ?? ""}>
      ${proof ? this.verdict(proof) : html`<p>${this.t("proof.not_yet")}</p>`}
      ${proof?.answer ? this.steps(proof) : nothing} ${this.root()}
      <p>
        <a href=${`/api/receipts/${encodeURIComponent(this.roundId)}?session_id=${encodeURIComponent(this.sessionId)}`} download=${`${this.roundId}.json`}
          >${this.t("proof.download")}</a
        >
        · <a href="/verify.html" target="_blank" rel="noopener">${this.t("proof.elsewhere")}</a>
      </p>
    </div>`;
  }

  private verdict(proof: Proof): TemplateResult {
    const { answer } = proof;
    if (proof.state === "failed") {
      return html`<div class="failed" role="alert">
        <p class="verdict">✗ ${this.t("proof.failed")}</p>
        <p>${this.t("proof.failed_check", { check: answer?.check ?? "" })}</p>
        <p><code>${answer?.message}</code></p>
        <p>${this.t("proof.what_now")}</p>
      </div>`;
    }
    if (proof.state === "checking") return html`<p>${this.t("proof.tick.checking")}</p>`;
    if (proof.state === "unavailable") {
      return html`<p class="warn">${this.t("proof.unavailable", { why: proof.why ?? "" })}</p>
        <button data-does="again" @click=${() => this.store.proofs.verify(this.roundId, this.sessionId)}>${this.t("proof.again")}</button>`;
    }
    return html`<p class="verdict">✓ ${this.t("proof.passed")}</p>
      ${proof.answer?.development ? html`<p class="muted">${this.t("proof.development")}</p>` : nothing}
      ${proof.answer?.demo ? html`<p data-demo>${this.t("proof.demo")}</p>` : nothing}
      ${proof.state === "first_use" ? html`<p class="warn" data-warning>${this.t("proof.first_use")}</p>` : nothing}`;
  }

  private steps(proof: Proof): TemplateResult {
    const { answer } = proof;
    return html`<details>
      <summary>${this.t("proof.steps", { count: answer?.steps.length ?? 0, ms: (answer?.took ?? 0).toFixed(1) })}</summary>
      ${answer?.steps.map((step) => {
        const key = titleKey(step);
        const why = skippedKey(step);
        return html`<details class="step" data-step=${step.name} data-step-verdict=${step.verdict}>
          <summary>${MARKS[step.verdict]} ${this.store.words.has(key) ? this.t(key as WordKey) : step.name}</summary>
          ${why ? html`<p>${this.t(why)}</p>` : step.message ? html`<p><code>${step.message}</code></p>` : nothing}
          <dl>
            ${Object.entries(step.looked).map(([name, value]) => html`<div><dt>${name}</dt><dd><code>${value}</code></dd></div>`)}
          </dl>
        </details>`;
      })}
    </details>`;
  }

  private root(): TemplateResult {
    const { proofs } = this.store;
    return html`<form @submit=${(event: Event) => this.pin(event)}>
      <label>
        ${this.t("proof.root")}
        <input name="root" autocomplete="off" spellcheck="false" .value=${proofs.pinned} placeholder=${proofs.firstSeen} aria-describedby="root-help" />
      </label>
      <button data-does="pin">${this.t("proof.pin")}</button>
      ${this.scanner ?? html`<button type="button" data-does="scan" @click=${() => this.scan()}>${this.t("proof.scan")}</button>`}
      <p id="root-help" class="muted">${this.wrong || this.t("proof.root_help")}</p>
    </form>`;
  }

  /** What reads QR codes is loaded once somebody wants it. */
  private async scan(): Promise<void> {
    const [{ scanField, stopScan }, { scanWords }, { make }] = await Promise.all([
      import("../verify/scan.js"),
      import("../verify/scan-words.js"),
      import("../verify/make.js"),
    ]);
    const { language } = this.store;
    const words = scanWords[language === "it" || language === "de" ? language : "en"];
    this.stopScan = stopScan;
    this.scanner = scanField({ word: (key) => words[key], make, take: (root) => this.take(root) });
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    this.stopScan?.();
    super.disconnectedCallback();
  }

  private pin(event: Event): void {
    event.preventDefault();
    this.take(this.renderRoot.querySelector<HTMLInputElement>("input[name=root]")?.value.replace(/[\s:]/g, "") ?? "");
  }

  private take(text: string): void {
    if (text && !/^[0-9a-f]{64}$/i.test(text)) {
      this.wrong = this.t("proof.root_wrong", { count: text.length });
      return;
    }
    this.wrong = "";
    this.store.proofs.pin(text);
    if (this.sessionId) void this.store.proofs.verify(this.roundId, this.sessionId);
  }
}

define("rgs-proof", ProofElement);
