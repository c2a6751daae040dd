import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { fileSize } from './database_files.ts';

/** Frames of a write-ahead log that the engine does not apply. */
export interface DiscardedFrames {
  readonly frames: number;
  /** How many of them end a commit. */
  readonly commits: number;
}

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** With the lowest bit set, checksums are of big-endian words. */
const MAGIC = 0x377f0682;
/** Position of the salts in the header of the log, and of a frame. */
const LOG_SALTS = 16;
const FRAME_SALTS = 8;

/**
 * Counts the frames behind the last valid commit of the write-ahead log (https://www.sqlite.org/fileformat2.html#walformat), before
 * the engine recovers it. Frames with other salts were applied by an earlier checkpoint. Without commits among them they
 * belong to a transaction that was never committed.
 */
export function discardedFrames(databasePath: string): DiscardedFrames {
  const none = { frames: 0, commits: 0 };
  if (!existsSync(databasePath)) return none;
  const path = `${realpathSync(databasePath)}-wal`;
  if (fileSize(path) <= HEADER_BYTES) return none;
  const file = openSync(path, 'r');
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    readSync(file, header, 0, HEADER_BYTES, 0);
    const magic = header.readUInt32BE(0);
    const pageBytes = header.readUInt32BE(8);
    if ((magic | 1) !== (MAGIC | 1) || pageBytes < 512 || pageBytes > 65_536) return none;
    return walk(file, header, pageBytes, (magic & 1) === 1);
  } finally {
    closeSync(file);
  }
}

function walk(file: number, header: Buffer, pageBytes: number, isBigEndian: boolean): DiscardedFrames {
  const salts = header.subarray(LOG_SALTS, LOG_SALTS + 8);
  const sum = openChecksum(isBigEndian);
  sum.add(header, 0, 24);
  let isValid = sum.equals(header, 24);
  let frames = 0;
  let commits = 0;
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
  for (let position = HEADER_BYTES; ; position += frame.length) {
    const bytes = readSync(file, frame, 0, isValid ? frame.length : FRAME_HEADER_BYTES, position);
    // An incomplete frame counts as soon as it has a header.
    if (bytes < FRAME_HEADER_BYTES) return { frames, commits };
    const isCurrent = frame.subarray(FRAME_SALTS, FRAME_SALTS + 8).equals(salts);
    isValid &&= isCurrent;
    if (!isCurrent) continue;
    frames += 1;
    if (isValid) {
      sum.add(frame, 0, 8);
      sum.add(frame, FRAME_HEADER_BYTES, pageBytes);
      isValid = bytes === frame.length && sum.equals(frame, 16);
    }
    if (frame.readUInt32BE(4) === 0) continue;
    commits += 1;
    if (isValid) [frames, commits] = [0, 0];
  }
}

/** The checksum of the format: two sums of 32-bit words. */
function openChecksum(isBigEndian: boolean) {
  let [first, second] = [0, 0];
  return {
    add(bytes: Buffer, from: number, length: number): void {
      const view = new DataView(bytes.buffer, bytes.byteOffset + from, length);
      for (let at = 0; at < length; at += 8) {
        first = (first + view.getUint32(at, !isBigEndian) + second) >>> 0;
        second = (second + view.getUint32(at + 4, !isBigEndian) + first) >>> 0;
      }
    },
    equals: (bytes: Buffer, at: number) =>
      bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second,
  };
}
