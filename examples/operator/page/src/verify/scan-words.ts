/** The words of scanning a root, on verify.html and in the page. */

const en = {
  scan_camera: "Scan the root with the camera",
  scan_stop: "Stop the camera",
  scan_image: "Or read its QR code from a picture",
  scan_none: "There is no QR code of a root in this picture. A root is 64 hex digits.",
  scan_other: "The QR code is not a root: it says “{text}”.",
  scan_no_camera: "This browser gives the page no camera. Take a picture of the QR code and choose it, or type the root.",
  scan_refused: "The camera was refused. Take a picture of the QR code and choose it, or type the root.",
  scan_looking: "Hold the QR code of the root in front of the camera.",
};

export type ScanKey = keyof typeof en;

const it: Record<ScanKey, string> = {
  scan_camera: "Inquadra la radice con la fotocamera",
  scan_stop: "Spegni la fotocamera",
  scan_image: "Oppure leggi il suo codice QR da un'immagine",
  scan_none: "In questa immagine non c'è il codice QR di una radice. Una radice ha 64 cifre esadecimali.",
  scan_other: "Il codice QR non è una radice: dice “{text}”.",
  scan_no_camera: "Questo browser non dà la fotocamera alla pagina. Fotografa il codice QR e scegli l'immagine, oppure scrivi la radice.",
  scan_refused: "La fotocamera è stata negata. Fotografa il codice QR e scegli l'immagine, oppure scrivi la radice.",
  scan_looking: "Tieni il codice QR della radice davanti alla fotocamera.",
};

const de: Record<ScanKey, string> = {
  scan_camera: "Wurzel mit der Kamera einlesen",
  scan_stop: "Kamera ausschalten",
  scan_image: "Oder den QR-Code aus einem Bild lesen",
  scan_none: "In diesem Bild ist kein QR-Code einer Wurzel. Eine Wurzel hat 64 Hexziffern.",
  scan_other: "Der QR-Code ist keine Wurzel: er sagt «{text}».",
  scan_no_camera: "Dieser Browser gibt der Seite keine Kamera. Fotografieren Sie den QR-Code und wählen Sie das Bild, oder tippen Sie die Wurzel ein.",
  scan_refused: "Die Kamera wurde verweigert. Fotografieren Sie den QR-Code und wählen Sie das Bild, oder tippen Sie die Wurzel ein.",
  scan_looking: "Halten Sie den QR-Code der Wurzel vor die Kamera.",
};

export const scanWords: Record<"en" | "it" | "de", Record<ScanKey, string>> = { en, it, de };
