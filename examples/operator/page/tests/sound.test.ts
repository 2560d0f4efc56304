import assert from "node:assert/strict";
import { test } from "node:test";

import { settingsOf, STANDARD, type Settings } from "../src/state/settings.js";
import { Sound } from "../src/state/sound.js";

/** What the browser's speech is asked to say, with these settings. */
function said(settings: Partial<Settings>, muted = false): { text: string; volume: number }[] {
  const spoken: { text: string; volume: number }[] = [];
  class Utterance {
    volume = 1;
    lang = "";
    constructor(readonly text: string) {}
  }
  const speech = { cancel: (): void => {}, speak: (words: Utterance) => spoken.push({ text: words.text, volume: words.volume }) };
  Object.assign(globalThis, { window: { speechSynthesis: speech }, speechSynthesis: speech, SpeechSynthesisUtterance: Utterance });
  const sound = new Sound(() => ({ ...STANDARD, ...settings }));
  sound.muted = muted;
  sound.say("No more bets.", "en");
  return spoken;
}

test("with sound on the dealer is heard, also by a player who has set nothing (F-11)", () => {
  const unset = settingsOf(undefined);
  assert.deepEqual([unset.sound, unset.voice, unset.effects], [true, true, true]);
  assert.deepEqual(said(unset), [{ text: "No more bets.", volume: 0.7 }]);
});

test("the voice is silent where it, its volume or all sound is off, and not where the game's sounds are", () => {
  assert.deepEqual(said({ voice: false }), []);
  assert.deepEqual(said({ voice_volume: 0 }), []);
  assert.deepEqual(said({ sound: false }), []);
  assert.deepEqual(said({}, true), []);
  assert.equal(said({ effects: false }).length, 1);
});
