import type { AuthStore } from '../../access/store/access.ts';
import type { RowMacs, TableWithMac } from '../../log/store/row_macs.ts';
import { NIL_UUID, uuidText } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { pagesOf } from '../../model/pages.ts';
import { passwordProfileInfo } from '../../model/resources.ts';
import { type CredentialRow, credentialColumns } from '../../sign_in/store/credentials.ts';
import { openPasswordMacs } from '../../sign_in/store/password_macs.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { consoleLinkTable, consoleSessionTable } from '../../sql/tables/installation.ts';
import { resourceTable } from '../../sql/tables/records.ts';
import { rowOrder, type Table } from '../../sql/tables/table.ts';
import { webhookTable } from '../../sql/tables/webhooks.ts';
import { all } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';

/** A row whose MAC is wrong, or that has none. */
export interface ForgedRow {
  readonly table: string;
  readonly realm?: string;
  readonly id: string;
}

const { table } = passwordProfileInfo;
const passwords = (dialect: Dialect): string => {
  const { source, named, order, isAfter } = rowOrder(resourceTable(passwordProfileInfo), dialect);
  return `select ${credentialColumns(named('realm_id'))} from ${source}
    where ${isAfter(1)} order by ${order} limit ?3`;
};

/**
 * Returns a function that yields every forged row of clients, their realms, signing keys, webhook targets, console links,
 * console sessions and password hashes.
 */
export function openForgedRows(
  { read }: Pick<Transactions, 'read'>,
  dialect: Dialect,
  macs: RowMacs,
  access: Pick<AuthStore, 'state' | 'signingKeys'>,
) {
  const passwordMacs = openPasswordMacs(macs);

  async function* forgedPasswords(): AsyncGenerator<ForgedRow> {
    const pages = pagesOf<CredentialRow>((last) => {
      const { realm_id, id } = last ?? { realm_id: NIL_UUID, id: NIL_UUID };
      return read(() => all(passwords(dialect), uuidText(realm_id), uuidText(id), LIMITS.exportPageRecords));
    });
    for await (const rows of pages)
      for (const row of rows)
        if (row.password_hash !== null && !passwordMacs.isValid(row))
          yield { table, realm: uuidText(row.realm_id), id: uuidText(row.id) };
  }

  async function* forgedIn(each: Table & TableWithMac): AsyncGenerator<ForgedRow> {
    const [id = ''] = each.key;
    for (const row of await read(() => all(`${each.select} order by ${id}`)))
      if (macs.isRowForged(each, row)) yield { table: each.name, id: String(row[id]) };
  }

  async function* forgedClients(): AsyncGenerator<ForgedRow> {
    for (const { clientId: id, ...client } of (await access.state(undefined))?.clients ?? []) {
      if (client.isForged) yield { table: 'client', id };
      if (client.hasForgedRealms) yield { table: 'client_realm', id };
    }
  }

  return async function* (): AsyncGenerator<ForgedRow> {
    yield* forgedClients();
    for (const { kid, isForged } of await access.signingKeys())
      if (isForged) yield { table: 'signing_key', id: kid };
    for (const each of [webhookTable, consoleLinkTable, consoleSessionTable]) yield* forgedIn(each);
    yield* forgedPasswords();
  };
}

export type ForgedRows = ReturnType<typeof openForgedRows>;
