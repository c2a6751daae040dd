import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { attempt } from '../../../model/attempt.ts';
import { Refusal } from '../../../model/fault.ts';

/** The description of a backup, in a file next to it. It holds no values of records. */
const MANIFEST = z.object({
  file: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** The backup holds every write that was acknowledged before this time. */
  taken_at: z.iso.datetime({ precision: 3 }),
  /** The release that created the backup. */
  program: z.string(),
  schema: z.int().positive(),
  /** The ID of the installation. */
  store_id: z.string(),
});

export type Manifest = z.infer<typeof MANIFEST>;

/** The path of the manifest of a backup. */
export function manifestPath(backup: string): string {
  return `${backup}.json`;
}

/** The copy of the manifest of the last backup, next to the database. */
export function lastBackupPath(database: string): string {
  return `${database}.last-backup`;
}

/** Reads a manifest; undefined where the file is not a valid one. */
export function readManifest(path: string): Manifest | undefined {
  return attempt(() => MANIFEST.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data);
}

/** Reads the manifest of a backup. Throws Refusal where it is missing or invalid. */
export function manifestFor(backup: string): Manifest {
  const path = manifestPath(backup);
  if (!existsSync(path)) {
    throw new Refusal(
      `the manifest ${path} does not exist: put it next to the backup, or pass --no-manifest for a copy that was not made ` +
        'by authrealm backup',
    );
  }
  const manifest = readManifest(path);
  if (!manifest)
    throw new Refusal(`${path} is not a valid manifest of a backup: restore it, or pass another backup`);
  return manifest;
}
