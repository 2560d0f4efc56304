/** The files of a zip, as a dispute is one: stored or deflated, nothing else. */

/** A dispute has well under a megabyte; what claims more is not unpacked. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const FILES_MAX = 64;

export class NoZip extends Error {}

export function isZip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
}

/** The files by name. */
export async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  if (count > FILES_MAX) throw new NoZip(`the zip has ${count} files, at most ${FILES_MAX}`);
  const found = new Map<string, Uint8Array<ArrayBuffer>>();
  let at = view.getUint32(end + 16, true);
  for (let index = 0; index < count; index += 1) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) throw new NoZip("the zip's list of files is damaged");
    const method = view.getUint16(at + 10, true);
    const packed = view.getUint32(at + 20, true);
    const size = view.getUint32(at + 24, true);
    const nameLength = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength));
    const local = view.getUint32(at + 42, true);
    if (size > FILE_BYTES_MAX) throw new NoZip(`${name} has ${size} bytes, at most ${FILE_BYTES_MAX}`);
    if (found.has(name)) throw new NoZip(`${name} is there twice`);
    found.set(name, await unpack(bytes, view, { name, method, packed, size, local }));
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return found;
}

function endOf(view: DataView): number {
  for (let at = view.byteLength - 22; at >= 0 && at > view.byteLength - 22 - 0xffff; at -= 1) {
    if (view.getUint32(at, true) === 0x06054b50) return at;
  }
  throw new NoZip("the zip has no end: it was cut off");
}

interface Entry {
  name: string;
  method: number;
  packed: number;
  size: number;
  local: number;
}

async function unpack(bytes: Uint8Array<ArrayBuffer>, view: DataView, entry: Entry): Promise<Uint8Array<ArrayBuffer>> {
  const { name, method, packed, size, local } = entry;
  if (local + 30 > bytes.length || view.getUint32(local, true) !== 0x04034b50) throw new NoZip(`${name}: its place in the zip is damaged`);
  const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const content = bytes.slice(begin, begin + packed);
  if (method === 0) return content;
  if (method !== 8) throw new NoZip(`${name} is packed by method ${method}; 0 and 8 are known`);
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const unpacked = new Uint8Array(size);
  let filled = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new NoZip(`${name} cannot be unpacked`);
    });
    if (done) break;
    if (filled + value.length > size) throw new NoZip(`${name} is larger than it says`);
    unpacked.set(value, filled);
    filled += value.length;
  }
  if (filled !== size) throw new NoZip(`${name} is smaller than it says`);
  return unpacked;
}
