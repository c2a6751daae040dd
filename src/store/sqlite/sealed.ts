import type { Database } from 'bun:sqlite';
import type { Place } from '../../access/keyring.ts';
import type { SealedStore, SealedValue } from '../../access/port.ts';
import type { Memory, Write } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { NIL_UUID } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { giveWay, readFrom } from './connection.ts';
import type { Snapshot } from './snapshot.ts';
import { writtenOf } from './verdicts.ts';
import type { Outcome, Writer } from './writer.ts';

/** The identifier of the key that a ciphertext names, as SQL: eight bytes behind its version. */
export function sealedBy(value: string): string {
  return `lower(hex(substr(${value}, 2, 8)))`;
}

/** No key is named so, and so it is not the name in any ciphertext, however short. */
const NO_KEY = '-';

/** A column that holds ciphertexts, and the columns that say where a row belongs. */
interface SealedColumn {
  readonly table: string;
  readonly column: string;
  readonly realm: string;
  readonly id: string;
}

/** Those of the descriptions, and the one of an instance table. */
const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'signing_key', column: 'private_sealed', realm: `'${NIL_UUID}'`, id: 'kid' },
  ...RESOURCES.flatMap((resource) =>
    sealedMembers(resource).map((name) => ({
      table: resource.table,
      column: `${name}_sealed`,
      realm: 'realm_id',
      id: resource.parent ? 'id' : 'realm_id',
    })),
  ),
];

function sealedMembers(resource: Resource): readonly string[] {
  return membersOf(resource).flatMap(({ name, placement }) => (placement.secret === 'sealed' ? [name] : []));
}

interface ValueRow {
  readonly realm: string;
  readonly id: string;
  readonly sealed: Uint8Array;
}

/** The statements about one column of ciphertexts. An empty one is a secret that was forgotten. */
function prepareColumn(db: Database, { table, column, realm, id }: SealedColumn) {
  const isSealed = `${column} is not null and ${column} <> x''`;
  return {
    table,
    column,
    select: db.prepare<ValueRow, [string, string, string, number]>(
      `select ${realm} as realm, ${id} as id, ${column} as sealed from ${table}
       where (${realm}, ${id}) > (?, ?) and ${isSealed} and ${sealedBy(column)} <> ?
       order by ${realm}, ${id} limit ?`,
    ),
    update: db.prepare<unknown, [Uint8Array, string, string, Uint8Array]>(
      `update ${table} set ${column} = ? where ${realm} = ? and ${id} = ? and ${column} = ?`,
    ),
    hasOther: db.prepare<unknown, [string]>(
      `select 1 from ${table} where ${isSealed} and ${sealedBy(column)} <> ? limit 1`,
    ),
  };
}

/** Sealed values and the keyring's proofs in one SQLite file. */
export function openSealed(db: Database, snapshot: Snapshot, writer: Writer): SealedStore {
  const columns = SEALED_COLUMNS.map((column) => prepareColumn(db, column));
  const touch = db.prepare('update instance set access_version = access_version + 1');
  const insertCheck = db.prepare(
    `insert or ignore into keyring select ?1, ?2, ?3
     where (select count(*) from keyring where key_id <> ?1) <= 1`,
  );
  const isProven = db.prepare<unknown, [string]>('select 1 from keyring where key_id = ?');
  const retire = db.prepare('delete from keyring where key_id <> ?');
  const forgetSome = db.prepare(
    `delete from idempotency where rowid in
       (select rowid from idempotency where ${sealedBy('answer_sealed')} <> ? limit ${LIMITS.cascadeRecordsMax})`,
  );

  function change(work: () => boolean): Promise<boolean> {
    return writer.write((): Outcome<boolean> => {
      const value = work();
      if (value) touch.run();
      return { value, keep: value };
    });
  }

  function valuesBehind(notBy: string, after: Place | undefined, limit: number): SealedValue[] {
    const found: SealedValue[] = [];
    const first = columns.findIndex(({ table, column }) => table === after?.table && column === after.column);
    for (const { table, column, select } of columns.slice(Math.max(first, 0))) {
      const isFirst = table === after?.table && column === after.column;
      const [realm, id] = isFirst ? [after.realm, after.id] : ['', ''];
      for (const row of select.all(realm, id, notBy, limit - found.length)) {
        found.push({ place: { table, column, realm: row.realm, id: row.id }, sealed: row.sealed });
      }
      if (found.length >= limit) break;
    }
    return found;
  }

  /** One commit of the end of other keys. */
  function retireStep(keyId: string): Outcome<'refused' | 'goes on' | 'retired'> {
    if (!isProven.get(keyId) || columns.some(({ hasOther }) => hasOther.get(keyId))) {
      return { value: 'refused', keep: false };
    }
    // A repetition would not find its answer again: the place is a digest under the key that ends.
    const rows = forgetSome.run(keyId).changes;
    if (rows >= LIMITS.cascadeRecordsMax) return { value: 'goes on', keep: true, rows };
    retire.run(keyId);
    touch.run();
    return { value: 'retired', keep: true, rows };
  }

  return {
    values: (notBy, after, limit) => readFrom(snapshot, () => valuesBehind(notBy ?? NO_KEY, after, limit)),
    replace: async (values) => {
      await change(() => {
        for (const { place, seen, sealed } of values) {
          const column = columns.find((each) => each.table === place.table && each.column === place.column);
          column?.update.run(sealed, place.realm, place.id, seen);
        }
        return true;
      });
    },
    addKeyCheck: (check, at) =>
      change(() => {
        insertCheck.run(check.keyId, check.sealed, at);
        return isProven.get(check.keyId) !== null;
      }),
    async retireOtherKeys(keyId) {
      for (;;) {
        const step = await writer.write(() => retireStep(keyId));
        if (step !== 'goes on') return step === 'retired';
        await giveWay();
      }
    },
  };
}

/** What is looked at before it is stored. */
export interface SealGuard {
  ofWrite(write: Write): void;
  ofMemory(memory: Memory): void;
}

/**
 * Refuses, inside the transaction of a write, a secret that was sealed by a key without proof: a process that missed
 * the end of a change of the master key would store what nobody opens.
 */
export function openSealGuard(db: Database): SealGuard {
  const members = new Map(RESOURCES.map((resource) => [resource, sealedMembers(resource)]));
  // A database without any proof was given no master key yet, and cannot say.
  const isProven = db.prepare<unknown, [Uint8Array]>(
    `select 1 where not exists (select 1 from keyring)
       or exists (select 1 from keyring where key_id = ${sealedBy('?')})`,
  );

  function prove(sealed: unknown): void {
    if (sealed instanceof Uint8Array && !isProven.get(sealed)) {
      throw new Fault('unavailable', [], new Error('the master key was changed while this ran'));
    }
  }

  return {
    ofWrite(write) {
      for (const name of members.get(write.resource) ?? []) prove(writtenOf(write, name));
    },
    ofMemory: ({ sealed }) => prove(sealed),
  };
}
