/** Sounds made by WebAudio, and the dealer's voice by SpeechSynthesis. Nothing is loaded, and nothing sounds unasked. */

import type { Settings } from "./settings.js";

interface Tone {
  at: number;
  hertz: number;
  seconds: number;
  loud: number;
  wave?: OscillatorType;
}

export class Sound {
  /** Set by the sound button; sitting down at another table resets it (F-6). */
  muted = false;
  private context: AudioContext | undefined;

  constructor(private readonly settings: () => Settings) {}

  get on(): boolean {
    return this.settings().sound && !this.muted;
  }

  chip(): void {
    this.play([{ at: 0, hertz: 2100, seconds: 0.04, loud: 0.25, wave: "triangle" }]);
  }

  card(): void {
    this.play([{ at: 0, hertz: 320, seconds: 0.06, loud: 0.3, wave: "triangle" }]);
  }

  lastBets(): void {
    this.play([{ at: 0, hertz: 880, seconds: 0.12, loud: 0.2 }]);
  }

  win(): void {
    const notes = [523, 659, 784];
    this.play(notes.map((hertz, index) => ({ at: index * 0.11, hertz, seconds: 0.22, loud: 0.25 })));
  }

  say(text: string, language: string): void {
    const { voice, voice_volume: volume } = this.settings();
    if (!this.on || !voice || volume === 0 || !("speechSynthesis" in window)) return;
    const words = new SpeechSynthesisUtterance(text);
    words.lang = language;
    words.volume = volume / 100;
    speechSynthesis.cancel();
    speechSynthesis.speak(words);
  }

  /** Gets the sound device ready while nothing else is to be done: that takes longer than a frame. */
  prepare(): void {
    if (this.context || !this.may) return;
    const begin = (): void => void (this.context ??= new AudioContext());
    if ("requestIdleCallback" in window) requestIdleCallback(begin, { timeout: 2000 });
    else setTimeout(begin, 200);
  }

  /** Browsers allow sound once the player has done something on the page. */
  private get may(): boolean {
    const { effects, game_volume: volume } = this.settings();
    return this.on && effects && volume > 0 && (navigator.userActivation?.hasBeenActive ?? false);
  }

  /** Sounds after the next frame: what the player did is seen first. */
  private play(tones: Tone[]): void {
    if (this.may) requestAnimationFrame(() => setTimeout(() => this.sound(tones)));
  }

  private sound(tones: Tone[]): void {
    const volume = this.settings().game_volume / 100;
    this.context ??= new AudioContext();
    const start = this.context.currentTime;
    for (const tone of tones) {
      const oscillator = this.context.createOscillator();
      const gain = this.context.createGain();
      oscillator.type = tone.wave ?? "sine";
      oscillator.frequency.value = tone.hertz;
      gain.gain.setValueAtTime(tone.loud * volume, start + tone.at);
      gain.gain.exponentialRampToValueAtTime(0.0001, start + tone.at + tone.seconds);
      oscillator.connect(gain).connect(this.context.destination);
      oscillator.start(start + tone.at);
      oscillator.stop(start + tone.at + tone.seconds);
    }
  }
}
