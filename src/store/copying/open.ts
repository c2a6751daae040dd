import { Refusal } from '../../domain/fault.ts';
import type { Program } from '../migrations.ts';
import { addressName, type DatabaseAddress } from '../open.ts';
import { toRefusal } from '../refusals.ts';
import { type CopyResult, type CopyRun, copyAll } from './copy.ts';
import type { CopySource } from './port.ts';
import { openPostgresSource, openPostgresTarget } from './postgres.ts';
import { openSqliteSource, openSqliteTarget } from './sqlite.ts';
import { isUnfinished } from './unfinished_copy.ts';

export {
  type CopyRun,
  hasEqualDigests,
  type TableComparison,
} from './copy.ts';

/** The source and the target of a copy. */
export interface CopyEndpoints {
  readonly from: DatabaseAddress;
  readonly to: DatabaseAddress;
}

/** Copies an installation into another database. Throws Refusal with what to do. */
export async function copyDatabase(
  { from, to }: CopyEndpoints,
  program: Program,
  run: Omit<CopyRun, 'id'>,
): Promise<CopyResult> {
  return withSource(from, program, async (source) => {
    const target = await openNamed('target', to, () =>
      to.engine === 'sqlite' ? openSqliteTarget(to.path, program) : openPostgresTarget(to, program),
    );
    try {
      await assertDistinct(source, target);
      return await copyAll({ source, target }, { id: program.clock.mintId(), ...run });
    } finally {
      await target.close();
    }
  });
}

async function withSource<T>(
  from: DatabaseAddress,
  program: Program,
  work: (source: CopySource) => Promise<T>,
): Promise<T> {
  const source = await openNamed('source', from, () => openSource(from, program));
  try {
    await assertCompleteSource(source);
    return await work(source);
  } finally {
    await source.close();
  }
}

function openSource(address: DatabaseAddress, program: Program): Promise<CopySource> {
  return address.engine === 'sqlite'
    ? openSqliteSource(address.path, program)
    : openPostgresSource(address, program);
}

type CopyEnd = 'source' | 'target';

const FLAGS: Readonly<Record<CopyEnd, string>> = { source: '--from', target: '--to' };

/** Opens a side, and adds its name to the errors of all of its methods. */
async function openNamed<S extends object>(
  which: CopyEnd,
  address: DatabaseAddress,
  open: () => Promise<S>,
): Promise<S> {
  const side = await withName({ which, address, path: addressName(address) }, open);
  const methods = Object.entries(side).map(([name, method]) => [
    name,
    (...values: unknown[]) =>
      withName({ which, address }, () => (method as (...values: unknown[]) => Promise<unknown>)(...values)),
  ]);
  return Object.fromEntries(methods) as S;
}

interface NamedSide {
  readonly which: CopyEnd;
  readonly address: DatabaseAddress;
  /** For errors that name the database themselves. */
  readonly path?: string;
}

/** Adds the name of a side to the errors of its work. */
async function withName<T>({ which, address, path }: NamedSide, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const refusal = toRefusal(error, path);
    if (!(refusal instanceof Refusal)) throw error;
    // The advice is written for commands with one database.
    const message = refusal.message
      .replace(', or in the URL of AUTHREALM_DATABASE', '')
      .replaceAll('--database', FLAGS[which]);
    const isNamed = path !== undefined && refusal !== error;
    throw new Refusal(`the ${which}${isNamed ? '' : ` ${addressName(address)}`}: ${message}`, {
      cause: error,
    });
  }
}

async function assertCompleteSource(source: CopySource): Promise<void> {
  const { storeId } = await source.installation();
  if (!isUnfinished(storeId)) return;
  throw new Refusal(
    'the source is itself an unfinished copy: complete that copy, or pass the database that it was made from',
  );
}

async function assertDistinct(source: CopySource, target: CopySource): Promise<void> {
  if ((await source.identity()) !== (await target.identity())) return;
  throw new Refusal('the source and the target are the same database: pass two databases');
}
