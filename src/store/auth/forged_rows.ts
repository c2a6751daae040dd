import type { AuthStore, ForgedRow, ForgedRows } from '../../auth/port.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { passwordProfileInfo } from '../../domain/resources.ts';
import { macColumn } from '../records/derived_columns.ts';
import { all } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { readWebhooks } from '../webhooks/webhooks.ts';
import { readForgedLinks } from './console_links.ts';
import { readForgedSessions } from './console_sessions.ts';
import type { RowMacs } from './row_macs.ts';

const { table } = passwordProfileInfo;
const HASH = 'password_hash';
const PASSWORDS = `select realm_id, id, ${HASH} as hash, ${macColumn(HASH)} as mac from ${table}
  where (realm_id, id) > (?1, ?2) order by realm_id, id limit ?3`;

interface PasswordRow {
  readonly realm_id: Uuid;
  readonly id: Uuid;
  readonly hash: string | null;
  readonly mac: Uint8Array | null;
}

/** Reads every row that has a MAC, and yields those whose MAC is wrong or missing. */
export function openForgedRows(
  { read }: Pick<Transactions, 'read'>,
  macs: RowMacs,
  access: Pick<AuthStore, 'state' | 'signingKeys'>,
): ForgedRows {
  async function* forgedPasswords(): AsyncGenerator<ForgedRow> {
    for (let after: Pick<PasswordRow, 'realm_id' | 'id'> = { realm_id: NIL_UUID, id: NIL_UUID }; ; ) {
      const position = [after.realm_id, after.id, LIMITS.exportPageRecords];
      const rows = await read(() => all<PasswordRow>(PASSWORDS, ...position));
      for (const { realm_id, id, hash, mac } of rows) {
        if (hash === null || macs.isValid(mac, table, id, HASH, hash)) continue;
        yield { table, realm: realm_id, id, hasMac: mac !== null };
      }
      const last = rows.at(-1);
      if (!last) return;
      after = last;
    }
  }

  async function* forgedClients(): AsyncGenerator<ForgedRow> {
    for (const { clientId: id, ...client } of (await access.state(undefined))?.clients ?? []) {
      if (client.isForged) yield { table: 'client', id, hasMac: true };
      if (client.hasForgedRealms) yield { table: 'client_realm', id, hasMac: true };
    }
  }

  return async function* () {
    yield* forgedClients();
    for (const { kid, isForged } of await access.signingKeys())
      if (isForged) yield { table: 'signing_key', id: kid, hasMac: true };
    for (const { webhookId, isForged } of await read(() => readWebhooks(macs)))
      if (isForged) yield { table: 'webhook', id: webhookId, hasMac: true };
    for (const id of await read(() => readForgedLinks(macs)))
      yield { table: 'console_link', id, hasMac: true };
    for (const id of await read(() => readForgedSessions(macs)))
      yield { table: 'console_session', id, hasMac: true };
    yield* forgedPasswords();
  };
}
