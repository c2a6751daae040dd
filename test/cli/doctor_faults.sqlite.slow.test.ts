import { describe, test } from 'bun:test';
import {
  COMMON_FAULTS,
  createHealthyFile,
  type DatabaseFault,
  expectFound,
  runDoctorOnFile,
  sqlOf,
  tamperFile,
  UNKNOWN_ID,
} from '../support/doctor_report.ts';

const FAULTS: readonly DatabaseFault[] = [
  ...COMMON_FAULTS,
  {
    name: 'a row that violates a foreign key',
    check: 'integrity',
    says: /^1 rows of webhook_progress reference a row of webhook that does not exist$/,
    sql: ({ realm }) => `insert into webhook_progress values ('${UNKNOWN_ID}', '${realm}', 0, 0, 0, 0, 0)`,
  },
  {
    name: 'a value that was sealed for another row',
    check: 'sealed values',
    says: /client_secret_sealed cannot be decrypted/,
    sql: ({ oidcProfile: id }) => `update oidc_profile set client_secret_sealed =
      (select client_secret_sealed from oidc_profile where client_secret_sealed is not null) where id = unhex('${id}', '-')`,
    id: ({ oidcProfile: id }) => id,
  },
  {
    name: 'a signing key that does not decrypt',
    check: 'sealed values',
    says: /private_sealed cannot be decrypted/,
    sql: `update signing_key set private_sealed = cast(private_sealed || x'00' as blob)`,
  },
  {
    name: 'a sealed value of one byte',
    check: 'sealed values',
    says: /client_secret_sealed cannot be decrypted/,
    sql: `update oidc_profile set client_secret_sealed = x'01' where client_secret_sealed is not null`,
  },
  {
    name: 'a log secret that does not decrypt',
    check: 'sealed values',
    says: /sealed cannot be decrypted/,
    sql: `update instance_secret set sealed = cast(sealed || x'00' as blob)`,
    id: () => 'log',
  },
];

describe('faults in a SQLite database', () => {
  for (const fault of FAULTS) {
    test(`doctor finds ${fault.name} in a SQLite database`, async () => {
      const { path, first, second } = await createHealthyFile();
      tamperFile(path, (db) => db.exec(sqlOf(fault, first)));
      expectFound(await runDoctorOnFile(path), fault, [first, second]);
    });
  }
});
