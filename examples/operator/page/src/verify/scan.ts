/** Reads the fingerprint of a root from a QR code: by the camera, or from a picture. Nothing leaves the device. */

import decodeQR from "qr/decode.js";

import type { ScanKey } from "./scan-words.js";

interface Around {
  word(key: ScanKey): string;
  make(name: string, properties: Record<string, string>, ...children: (Node | string)[]): HTMLElement;
  /** Takes the root that was found, 64 hex digits. */
  take(root: string): void;
}

/** The browser's own reader, where it has one (most phones). */
interface Detector {
  detect(source: CanvasImageSource): Promise<{ rawValue: string }[]>;
}
declare const BarcodeDetector: (new (options: { formats: string[] }) => Detector) | undefined;

const FRAME_MS = 150;
/** A larger picture is made smaller: a QR code of 64 digits needs no more. */
const SIDE_MAX = 1600;
/** A still picture may take longer than a frame of a camera. */
const PICTURE_MS = 3000;

let stop: () => void = () => {};

/** The root in what a QR code says: the 64 digits alone, with colons or spaces, or behind `root=` or `root:`. */
export function rootIn(text: string): string | undefined {
  const bare = text.trim().replace(/^(rgs-)?root[:=]/i, "").replace(/[\s:]/g, "").toLowerCase();
  return /^[0-9a-f]{64}$/.test(bare) ? bare : undefined;
}

/** Turns the camera off, where it is on. */
export function stopScan(): void {
  stop();
}

export function scanField({ word, make, take }: Around): HTMLElement {
  stop();
  const says = make("p", { class: "muted", id: "scan-says", role: "status" });
  const button = make("button", { id: "scan", type: "button" }, word("scan_camera"));
  const video = make("video", { muted: "", playsinline: "", hidden: "" }) as HTMLVideoElement;
  const picture = make("input", { id: "scan-image", type: "file", accept: "image/*" }) as HTMLInputElement;
  const found = (text: string | undefined): boolean => {
    if (text === undefined) return false;
    const root = rootIn(text);
    if (root === undefined) {
      says.textContent = word("scan_other").replace("{text}", text.slice(0, 80));
      return false;
    }
    stop();
    take(root);
    return true;
  };
  const off = (): void => {
    video.hidden = true;
    button.textContent = word("scan_camera");
  };
  button.addEventListener("click", () => {
    if (!video.hidden) return stop();
    video.hidden = false;
    button.textContent = word("scan_stop");
    says.textContent = word("scan_looking");
    void watch(video, found, off).catch((error: unknown) => {
      stop();
      const refused = error instanceof DOMException && error.name === "NotAllowedError";
      says.textContent = word(refused ? "scan_refused" : "scan_no_camera");
    });
  });
  picture.addEventListener("change", () => {
    const [file] = picture.files ?? [];
    picture.value = ""; // the same picture may be chosen again
    if (!file) return;
    void readPicture(file).then((text) => {
      if (text === undefined) says.textContent = word("scan_none");
      else found(text);
    });
  });
  const label = make("label", { for: "scan-image" }, word("scan_image"), picture);
  return make("div", { class: "scan" }, button, video, label, says);
}

/** Looks at the camera until a root is found or the player stops. Throws where there is no camera. */
async function watch(video: HTMLVideoElement, found: (text: string | undefined) => boolean, off: () => void): Promise<void> {
  let on = true;
  stop = () => {
    on = false;
    off();
  };
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  stop = () => {
    on = false;
    for (const track of stream.getTracks()) track.stop();
    off();
  };
  if (!on) return stop();
  video.srcObject = stream;
  await video.play();
  const detector = await ownReader();
  while (on) {
    if (found(await readFrame(video, detector))) return;
    await new Promise((resolve) => setTimeout(resolve, FRAME_MS));
  }
}

async function ownReader(): Promise<Detector | undefined> {
  return typeof BarcodeDetector === "undefined" ? undefined : new BarcodeDetector({ formats: ["qr_code"] });
}

async function readFrame(video: HTMLVideoElement, detector: Detector | undefined): Promise<string | undefined> {
  if (video.videoWidth === 0) return undefined;
  const own = await detector?.detect(video).catch(() => []);
  return own?.[0]?.rawValue ?? decode(video, video.videoWidth, video.videoHeight);
}

async function readPicture(file: File): Promise<string | undefined> {
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  return bitmap && decode(bitmap, bitmap.width, bitmap.height, PICTURE_MS);
}

function decode(source: CanvasImageSource, width: number, height: number, timeLimit?: number): string | undefined {
  const scale = Math.min(1, SIDE_MAX / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) return undefined;
  context.drawImage(source, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  try {
    return decodeQR({ width: canvas.width, height: canvas.height, data }, timeLimit ? { timeLimit } : {});
  } catch {
    return undefined; // nothing that can be read: the next frame may be better
  }
}
