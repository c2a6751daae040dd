import { z } from 'zod';
import { FAULTS, Fault, type FaultCode, Refusal } from '../../../model/fault.ts';
import { LIMITS } from '../../../model/limits.ts';
import { intersectRealms, type Principal } from '../../../model/principal.ts';
import { realm, user } from '../../../model/resources.ts';
import { identifier } from '../../../model/rule.ts';
import { withTimeout } from '../../../model/timeout.ts';
import { exportUsers, parseCsvMap } from '../../../ops/transfer/csv_users.ts';
import { exportRecords } from '../../../ops/transfer/export.ts';
import type { RejectedLine } from '../../../ops/transfer/import.ts';
import { importFile, recordEnd } from '../../../ops/transfer/import_file.ts';
import { exampleIdOf } from '../../openapi/examples.ts';
import { HEADERS } from '../../openapi/responses.ts';
import { partsOf } from '../../pipeline/body.ts';
import type { Call, CallHandler } from '../../pipeline/call.ts';
import type { Operation } from '../../pipeline/operation.ts';
import { readParameters } from '../../pipeline/reading.ts';
import { faultReply, NDJSON_TYPE, type Reply } from '../../server/reply.ts';
import { ADMIN_PATH, ADMIN_TAG, type AdminDeps } from './operation.ts';
import { showRealms } from './realms.ts';

const CSV_TYPE = 'text/csv';
const IN_PROGRESS = faultReply('rate_limited', { 'Retry-After': '60' }, 'another one is in progress');
const LINE_EXAMPLE = `{"type":"${user.type}","realm_id":"${exampleIdOf(realm)}","id":"${exampleIdOf(user)}","name":"Jane","email":"jane@example.com"}\n`;
const RESULT_EXAMPLE = '{"line":2,"reason":"email is missing"}\n';
const CSV_EXAMPLE = 'No,Name,E-mail\r\n1001,Jane,jane@example.com\r\n';
const MAP_EXAMPLE = `{"columns":{"No":"id","Name":"name","E-mail":"email"},"constants":{"realm_id":"${exampleIdOf(realm)}"}}`;
const NO_FOLDER = 'set TMPDIR of the service to a folder in which a dry run may create temporary files';

const about = (description: string, example: string) => ({ param: { description, example } });
const flag = z.enum(['true', 'false']).optional();
const importQuery = z.object({
  map: z.string().optional().meta(about('Of a CSV file: the members of its columns, as JSON.', MAP_EXAMPLE)),
  upsert: flag.meta(about('Update existing records that differ.', 'false')),
  dry_run: flag.meta(about('Report what the import would do, and change nothing.', 'false')),
});
const format = z.enum(['ndjson', 'csv']).optional();
const exportQuery = z.object({
  format: format.meta(about('All records, or users with their links as CSV.', 'ndjson')),
  realm: identifier('a realm')
    .optional()
    .meta(about('Only records of this realm.', exampleIdOf(realm))),
});

/** Answers a call, and works on until its promise ends. */
type Transfer = (call: Call, deps: AdminDeps, reply: (reply: Reply) => void) => Promise<void>;

/** Answers one call at a time; others are 429. */
function oneAtATime(transfer: Transfer): (deps: AdminDeps) => CallHandler {
  return (deps) => (call) => {
    const { transfers } = deps;
    if (transfers.has(transfer)) return IN_PROGRESS;
    return new Promise<Reply>((resolve, reject) => {
      const end = () => transfers.delete(transfer);
      transfers.set(transfer, transfer(call, deps, resolve).catch(reject).finally(end));
    });
  };
}

/** `rule` follows the detail of the fault. */
const faultSaying = (code: FaultCode, rule: string, cause: unknown) =>
  new Fault(code, [{ field: 'body', rule, detail: `${FAULTS[code].detail}: ${rule}` }], cause);

function senderOf(call: Call) {
  const { clientId: actor, realms } = call.principal as Principal;
  return { caller: { actor, address: call.address(), requestId: call.requestId }, realms };
}

const receiveImport: Transfer = async (call, deps, reply) => {
  const { map, upsert, dry_run } = readParameters(importQuery, call.request.url);
  const isDryRun = dry_run === 'true';
  const rejected: RejectedLine[] = [];
  try {
    const { counts, ignored, mapped, resumeLine, sha256, error } = await importFile(deps, {
      ...{ isDryRun, isUpsert: upsert === 'true', isStrict: false, stopAtFirst: false, fromLine: 1 },
      map: map === undefined ? undefined : parseCsvMap(map),
      chunks: partsOf(call.request),
      sender: senderOf(call),
      commitLines: LIMITS.uploadCommitLines,
      // The end of the request ends it.
      signal: new AbortController().signal,
      onRefused(line, reason) {
        if (rejected.length < LIMITS.uploadRejectionsMax) rejected.push({ line, reason });
      },
      onProgress: deps.loopBudget.turn,
    });
    const rest = `line ${resumeLine} is the first that was not imported`;
    if (error) throw faultSaying(error.code, rest, error.cause);
    const names = { ignored: Object.fromEntries(ignored), mapped: Object.fromEntries(mapped) };
    const end = { ...counts, ...names, resume_line: resumeLine ?? null, dry_run: isDryRun, sha256 };
    const lines = [...rejected, end].map((line) => `${JSON.stringify(line)}\n`);
    reply(fileReply(NDJSON_TYPE, lines.join('')));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (isDryRun && !error.isUsage) throw faultSaying('unavailable', NO_FOLDER, error.cause);
    throw new Fault('invalid_query', [{ field: 'map', rule: error.message }], error);
  }
};

/** A caller that left or does not read. */
const stalled = () => Promise.reject(new Fault('request_timeout'));

/** Writes as fast as the caller reads. */
const sendExport: Transfer = async (call, deps, reply) => {
  const query = readParameters(exportQuery, call.request.url);
  const isCsv = query.format === 'csv';
  const type = isCsv ? CSV_TYPE : NDJSON_TYPE;
  // Nothing would read, and so end, the stream of a HEAD.
  if (call.request.method === 'HEAD') return reply(fileReply(type, null));
  const sender = senderOf(call);
  const realms = intersectRealms(sender.realms, query.realm ? new Set([query.realm]) : '*');
  const snapshot = await deps.engine.records.openSnapshot();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const hash = new Bun.CryptoHasher('sha256');
  const { signal } = new AbortController();
  const written = (isCsv ? exportUsers : exportRecords)({
    ...{ snapshot, signal, open: undefined, isForHttp: true },
    within: realms === '*' ? undefined : [...realms].sort(),
    async write(text) {
      hash.update(text);
      await withTimeout(writer.write(Buffer.from(text)), LIMITS.transferIdleMsMax, stalled).catch(stalled);
      await deps.loopBudget.turn();
    },
    onProgress: () => undefined,
  });
  reply({ ...fileReply(type, readable), streamed: written });
  const records = await written.catch(() => null);
  snapshot.close();
  const detail = { records, realms: showRealms(realms), sha256: hash.digest('hex') };
  await recordEnd(deps, 'records.exported', detail, { signal, sender }).finally(() => {
    const ended = records === null ? writer.abort('incomplete') : writer.close();
    // Not awaited: it waits for a write that nobody reads.
    ended.catch(() => undefined);
  });
};

function fileReply(type: string, body: Reply['body']): Reply {
  return { status: 200, headers: { 'Content-Type': type, 'Cache-Control': 'no-store' }, body };
}

/** A response that is a file of one of these types. */
function fileOf(description: string, examples: Readonly<Record<string, string>>) {
  const media = Object.entries(examples).map(([type, example]) => [type, { schema: z.string(), example }]);
  const headers = { 'Cache-Control': HEADERS.noStore };
  return { status: 200, description, headers, content: Object.fromEntries(media) } as const;
}

const SHARED = { tag: ADMIN_TAG, isExtension: true, headers: ['X-Request-Id'] } as const;

/** Imports and exports, which only the realms of the caller limit. */
export const TRANSFER_OPERATIONS: readonly Operation<AdminDeps>[] = [
  {
    name: 'import-records',
    method: 'POST',
    path: `${ADMIN_PATH}/import`,
    access: { scope: 'transfer' },
    body: 'file',
    handle: oneAtATime(receiveImport),
    document: () => ({
      ...SHARED,
      summary: 'Import records from JSON lines, or users from CSV.',
      description:
        'As the command does, without secrets. Committed lines stay. A process runs one at a time.',
      query: importQuery,
      body: { schema: z.string(), examples: { [NDJSON_TYPE]: LINE_EXAMPLE, [CSV_TYPE]: CSV_EXAMPLE } },
      success: fileOf('The rejected lines, and at the end the counts.', { [NDJSON_TYPE]: RESULT_EXAMPLE }),
    }),
  },
  {
    name: 'export-records',
    method: 'GET',
    path: `${ADMIN_PATH}/export`,
    access: { scope: 'transfer' },
    handle: oneAtATime(sendExport),
    document: () => ({
      ...SHARED,
      summary: 'Export a snapshot of all records as JSON lines, or of users as CSV.',
      description: 'As the command does, without secrets. A process runs one at a time.',
      query: exportQuery,
      success: fileOf('The file.', { [NDJSON_TYPE]: LINE_EXAMPLE, [CSV_TYPE]: '"realm_id","id"\r\n' }),
    }),
  },
];
