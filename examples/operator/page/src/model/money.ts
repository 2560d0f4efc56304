/** Amounts: whole numbers of minor units (bigint) inside, major units with the currency's exponent for people. */

/** `12.50 EUR` as the language writes it. Exact for every amount. */
export function formatMoney(minor: bigint, exponent: number, currency: string, language: string): string {
  const negative = minor < 0n;
  const amount = negative ? -minor : minor;
  const unit = 10n ** BigInt(exponent);
  const fraction = exponent === 0 ? "" : (amount % unit).toString().padStart(exponent, "0");
  const parts = partsOf(exponent, currency, language).formatToParts(amount / unit);
  const text = parts.map((part) => (part.type === "fraction" ? fraction : part.value)).join("");
  return negative ? `\u2212${text}` : text;
}

/** As `formatMoney`, with a plus sign where something was won. */
export function formatNet(minor: bigint, exponent: number, currency: string, language: string): string {
  const text = formatMoney(minor, exponent, currency, language);
  return minor > 0n ? `+${text}` : text;
}

/** A chip's short face: `0.50`, `5`, `1k`. */
export function formatChip(minor: bigint, exponent: number, language: string): string {
  const unit = 10n ** BigInt(exponent);
  if (minor % unit !== 0n) {
    const fraction = (minor % unit).toString().padStart(exponent, "0").replace(/0+$/, "");
    return `${minor / unit}${decimalSign(language)}${fraction}`;
  }
  const major = minor / unit;
  return major >= 1000n && major % 1000n === 0n ? `${major / 1000n}k` : major.toString();
}

/** The minor units of what a person typed (`2.40`, `2,4`, `1000`), or undefined where it is no amount of the currency. */
export function parseMoney(text: string, exponent: number): bigint | undefined {
  const match = /^(\d{1,12})(?:[.,](\d{0,4}))?$/.exec(text.trim());
  if (!match) return undefined;
  const fraction = match[2] ?? "";
  if (fraction.length > exponent) return undefined;
  return BigInt((match[1] ?? "0") + fraction.padEnd(exponent, "0"));
}

/** What stands in a field for typing: no currency, a point, no groups. */
export function plainMoney(minor: bigint, exponent: number): string {
  const unit = 10n ** BigInt(exponent);
  if (exponent === 0) return minor.toString();
  return `${minor / unit}.${(minor % unit).toString().padStart(exponent, "0")}`;
}

const formats = new Map<string, Intl.NumberFormat>();

function partsOf(exponent: number, currency: string, language: string): Intl.NumberFormat {
  const key = `${language} ${currency} ${exponent}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat(language, {
      style: "currency",
      currency,
      minimumFractionDigits: exponent,
      maximumFractionDigits: exponent,
    });
    formats.set(key, format);
  }
  return format;
}

const decimalSigns = new Map<string, string>();

function decimalSign(language: string): string {
  let sign = decimalSigns.get(language);
  if (sign === undefined) {
    sign = new Intl.NumberFormat(language).formatToParts(1.5).find((part) => part.type === "decimal")?.value ?? ".";
    decimalSigns.set(language, sign);
  }
  return sign;
}
