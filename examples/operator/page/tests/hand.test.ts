import assert from "node:assert/strict";
import { test } from "node:test";

import de from "../src/words/de.js";
import en from "../src/words/en.js";
import { handWords, ranksOf } from "../src/words/hand.js";
import { Words } from "../src/words/index.js";
import it from "../src/words/it.js";

const words = { en: new Words("en", en), it: new Words("it", it), de: new Words("de", de) };
/** The names of the categories, as the API's texts have them. */
const NAMES: Record<keyof typeof words, Record<string, string>> = {
  en: { two_pair: "two pair", pair: "a pair", straight: "a straight", full_house: "a full house", high_card: "high card", flush: "a flush", quads: "four of a kind", royal_flush: "a royal flush", trips: "three of a kind" },
  it: { two_pair: "doppia coppia", pair: "coppia", straight: "scala", full_house: "full", quads: "poker" },
  de: { two_pair: "zwei Paare", pair: "ein Paar", straight: "Strasse", full_house: "Full House", quads: "Poker" },
};

function say(language: keyof typeof words, category: string, cards: string, other?: [string, string]): string {
  const against = other && { category: other[0], cards: other[1].split(" ") };
  return handWords(words[language], NAMES[language][category] ?? category, { category, cards: cards.split(" ") }, against);
}

test("a hand is named with its ranks, in each language", () => {
  const twoPair = "7s 7d 6s 6h Tc";
  assert.equal(say("en", "two_pair", twoPair), "two pair, sevens and sixes, ten kicker");
  assert.equal(say("it", "two_pair", twoPair), "doppia coppia, sette e sei, kicker dieci");
  assert.equal(say("de", "two_pair", twoPair), "zwei Paare, Siebener und Sechser, Kicker Zehn");
  assert.equal(say("en", "pair", "As Ad Kh 9c 2d"), "a pair of aces, king kicker");
  assert.equal(say("it", "pair", "As Ad Kh 9c 2d"), "coppia di assi, kicker re");
  assert.equal(say("de", "pair", "Js Jd Kh 9c 2d"), "ein Paar Buben, Kicker König");
  assert.equal(say("en", "full_house", "Ks Kd Kh 6c 6d"), "a full house, kings over sixes");
  assert.equal(say("en", "quads", "4s 4d 4h 4c Ad"), "four of a kind, fours, ace kicker");
  assert.equal(say("en", "trips", "2s 2d 2h Kc 9d"), "three of a kind, twos, king kicker");
  assert.equal(say("en", "flush", "As Js 8s 6s 3s"), "a flush, ace high");
  assert.equal(say("en", "high_card", "As Jd 8s 6s 3s"), "high card ace");
  assert.equal(say("en", "royal_flush", "As Ks Qs Js Ts"), "a royal flush");
});

test("the ace is high or low in a straight (H-3)", () => {
  assert.equal(say("en", "straight", "As Kd Qs Js Ts"), "a straight, ace high");
  assert.equal(say("en", "straight", "5s 4d 3s 2s As"), "a straight, five high");
  assert.deepEqual(ranksOf({ category: "straight_flush", cards: ["Ah", "5h", "4h", "3h", "2h"] }), [..."5432A"]);
});

test("against a hand of the same kind, the kickers are named up to the one that decides", () => {
  const mine = "7s 7d Ah Kc 4d";
  assert.equal(say("en", "pair", mine, ["pair", "7h 7c As Kd 9d"]), "a pair of sevens, kickers ace, king, four");
  assert.equal(say("en", "pair", mine, ["pair", "7h 7c As Qd 9d"]), "a pair of sevens, kickers ace, king");
  assert.equal(say("en", "pair", mine, ["pair", "8h 8c As Qd 9d"]), "a pair of sevens, ace kicker");
  assert.equal(say("en", "pair", mine, ["two_pair", "8h 8c As Ad 9d"]), "a pair of sevens, ace kicker");
  assert.equal(say("en", "pair", mine, ["pair", mine]), "a pair of sevens, ace kicker", "a tie");
  assert.equal(say("en", "high_card", "As Kd Ts 8c 2h", ["high_card", "As Kd Js 8c 2h"]), "high card ace, kickers king, ten");
  assert.equal(say("en", "flush", "As Ks Ts 8s 2s", ["flush", "As Qs Ts 8s 2s"]), "a flush, ace high, king kicker");
  assert.equal(say("en", "two_pair", "7s 7d 6s 6h Tc", ["two_pair", "7s 7d 6s 6h 8c"]), "two pair, sevens and sixes, ten kicker");
  assert.equal(say("en", "two_pair", "7s 7d 6s 6h Tc", ["two_pair", "7s 7d 5s 5h Ac"]), "two pair, sevens and sixes, ten kicker");
});

test("a hand without cards has the name of its category alone", () => {
  assert.equal(handWords(words.en, "two pair", { category: "two_pair" }), "two pair");
  assert.equal(handWords(words.en, "five of a kind", { category: "five", cards: ["As", "Ad"] }), "five of a kind");
});

test("two cards are named before the flop", () => {
  assert.equal(say("en", "high_card", "Ts 3c"), "high card ten");
  assert.equal(say("en", "pair", "Ts Tc"), "a pair of tens");
});
