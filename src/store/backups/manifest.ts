import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { z } from 'zod';
import { Refusal } from '../../domain/fault.ts';
import type { DatabaseSummary } from './verification.ts';

const KIND = 'authrealm backup';

/** What lies beside a backup and says what it is. It holds no value of a record. */
const MANIFEST = z.object({
  kind: z.literal(KIND),
  version: z.literal(1),
  file: z.string(),
  bytes: z.int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Everything that was acknowledged before this instant is in it. */
  taken_at: z.iso.datetime({ precision: 3 }),
  /** The release that made it. */
  program: z.string(),
  schema: z.int().positive(),
  /** The installation it is of. */
  store_id: z.string(),
  /** Rows of each table. */
  rows: z.record(z.string(), z.int().nonnegative()),
});

export type Manifest = z.infer<typeof MANIFEST>;

/** Where the manifest of a backup is. */
export function manifestPath(backup: string): string {
  return `${backup}.json`;
}

export interface BackupFacts extends DatabaseSummary {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly takenAt: number;
  readonly program: string;
}

export function manifestOf({
  path,
  bytes,
  sha256,
  takenAt,
  program,
  schema,
  storeId,
  rows,
}: BackupFacts): Manifest {
  const taken_at = new Date(takenAt).toISOString();
  const about = { kind: KIND, version: 1, file: basename(path) } as const;
  return { ...about, bytes, sha256, taken_at, program, schema, store_id: storeId, rows };
}

/** Reads what a file says, or undefined where it is no manifest of this program. */
export function readManifest(path: string): Manifest | undefined {
  try {
    return MANIFEST.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** The manifest of a backup. Throws Refusal where there is none that can be read. */
export function manifestFor(backup: string): Manifest {
  const path = manifestPath(backup);
  if (!existsSync(path)) {
    throw new Refusal(
      `there is no ${path}, which says what the backup must hold: put it there. For a copy that authrealm backup did ` +
        'not make, --no-manifest takes the word of the file itself',
    );
  }
  const manifest = readManifest(path);
  if (!manifest) throw new Refusal(`${path} is not the manifest of a backup, or it is damaged`);
  return manifest;
}
