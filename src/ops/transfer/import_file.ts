import type { Keyring } from '../../access/keys/keyring.ts';
import { openSignerKeys } from '../../access/keys/signer_keys.ts';
import type { Clock } from '../../model/id.ts';
import { signerKeyId } from '../../model/imported_hash.ts';
import { type AuditAction, COMMAND_LINE, createAuditEntry } from '../../model/log/audit_entry.ts';
import type { Engine } from '../store/open.ts';
import { type CsvMap, csvLines } from './csv_users.ts';
import { withDryRunStore } from './dry_run.ts';
import { type ImportOptions, importLines } from './import.ts';
import { type ImportContext, openLineParser } from './import_line.ts';
import { splitLines } from './line_reader.ts';
import { isUnavailable, retryWhileUnavailable } from './retry.ts';

/** A file to import. */
interface ImportFile
  extends Omit<ImportOptions, 'store' | 'read'>,
    Pick<ImportContext, 'isUpsert' | 'isStrict' | 'sender'> {
  /** A Fault of it ends the import, and is in the result. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Of a CSV file. */
  readonly map: CsvMap | undefined;
  readonly isDryRun: boolean;
  /** The signer key of a Firebase project. */
  readonly signerKey?: Uint8Array | undefined;
}

interface Database {
  readonly engine: Pick<Engine, 'access' | 'log' | 'records'>;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

/** Imports a file, and logs the end of it. Throws Refusal if its map does not fit. */
export async function importFile(database: Database, file: ImportFile) {
  const { engine, keyring, clock } = database;
  const { chunks, map, isDryRun, signerKey } = file;
  const signerKeys = openSignerKeys(engine.access, keyring, clock);
  if (signerKey && !isDryRun) await signerKeys.add(signerKey);
  const read = openLineParser({
    ...{ ...file, clock },
    installation: await engine.access.storeId(),
    signerKeyIds: (await signerKeys.ids()).union(new Set(signerKey ? [signerKeyId(signerKey)] : [])),
    seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain),
    open: (place, sealed) => keyring.open('oidc-client-secret', place, sealed),
  });
  const hash = new Bun.CryptoHasher('sha256');
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  }
  const importInto = (store: ImportOptions['store']) =>
    importLines(map ? csvLines(map, hashed()) : splitLines(hashed()), { ...file, store, read });
  const result = await (isDryRun
    ? withDryRunStore(engine.records, clock, importInto)
    : importInto(engine.records));
  const { counts, resumeLine: resume_line = null, error } = result;
  const sha256 = hash.digest('hex');
  const detail = { ...counts, sha256, resume_line, fault: error?.code ?? null };
  if (!isDryRun) await recordEnd(database, 'records.imported', detail, file);
  return { ...result, sha256 };
}

/** Logs the end of an import or export. The writes are in the log already, so an unavailable database is no error here. */
export async function recordEnd(
  { engine, clock }: Omit<Database, 'keyring'>,
  action: AuditAction,
  detail: Readonly<Record<string, unknown>>,
  { signal, sender }: Pick<ImportFile, 'signal' | 'sender'>,
): Promise<void> {
  const caller = sender?.caller ?? COMMAND_LINE;
  const entry = createAuditEntry(action, { id: clock.mintId(), detail }, { ...clock, caller });
  await retryWhileUnavailable(signal, () => engine.log.append([entry])).catch((error: unknown) => {
    if (!isUnavailable(error)) throw error;
  });
}
