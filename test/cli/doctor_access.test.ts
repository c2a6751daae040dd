import { beforeEach, expect, test } from 'bun:test';
import { changeClient } from '../../src/access/clients/clients.ts';
import { keyCheckOf, openKeyring } from '../../src/access/keys/keyring.ts';
import { mintSigningKey, rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { type CheckFinding, type CheckReport, isHealthy, runCheck } from '../../src/ops/doctor/inspection.ts';
import { authChecks, PROOF_REMOVED } from '../../src/ops/doctor/key_inspection.ts';
import { inspectEngine } from '../../src/ops/store/open.ts';
import { type Service, startService } from '../support/service.ts';

/** The checks of `doctor` for keys and clients, in each state. */

let service: Service;
beforeEach(async () => {
  service = await startService();
});

async function reports(): Promise<ReadonlyMap<string, CheckReport>> {
  const { db, clock, settings } = service;
  const database = await inspectEngine(settings.database);
  try {
    const checks = authChecks({
      store: () => database.accessOf(),
      keyring: () => db.keyring,
      clock,
    });
    const byName = new Map<string, CheckReport>();
    for (const check of checks) byName.set(check.name, await runCheck(check));
    return byName;
  } finally {
    await database.close();
  }
}

const reportOf = async (name: string) => (await reports()).get(name) as CheckReport;
const messagesOf = ({ findings }: CheckReport) => findings.map(({ says }: CheckFinding) => says);

test('doctor reports the facts of sound keys and clients and finds nothing', async () => {
  const { clientId } = await service.client('users:read');
  for (const scope of ['users:read', 'users:write']) await service.client(scope);
  await changeClient(service.db.engine.access, clientId, { disabledAt: 1 }, service.clock);
  const checks = [...(await reports()).values()];
  expect(checks.map((report) => [report.check, isHealthy(report)])).toEqual([
    ['master key', true],
    ['sealed values', true],
    ['signing keys', true],
    ['clients', true],
  ]);
  const stored = await service.db.engine.sealed.values(undefined, undefined, 500);
  expect(checks.map(({ facts }) => facts)).toEqual([
    [`the database requires key ${service.db.keyring.keyId}`],
    [`${stored.length} of them`],
    [expect.stringMatching(/^[0-9a-f-]{36} signs$/)],
    ['3, of them 1 disabled'],
  ]);
});

test('doctor reports a database without a master key, and an unfinished change of the master key', async () => {
  const { engine, keyring } = service.db;
  const next = openKeyring([service.clock.randomBytes(32)], service.clock);
  await engine.sealed.addKeyCheck(keyCheckOf(next), service.clock.now() + 1);
  const changing = await reportOf('master key');
  expect(changing.facts).toEqual([keyring, next].map(({ keyId }) => `the database requires key ${keyId}`));
  expect(messagesOf(changing)).toEqual([
    'the master key is being changed: run "authrealm keys rewrap" again if it was interrupted',
    `key ${next.keyId} is not the configured master key`,
  ]);
  await service.database.tamper('delete from keyring');
  const without = await reportOf('master key');
  expect([without.facts, messagesOf(without)]).toEqual([[], [PROOF_REMOVED]]);
});

test('doctor names a value that was sealed for another row', async () => {
  const { engine, keyring } = service.db;
  const { kid } = await rotateSigningKey(engine.access, keyring, service.clock);
  await service.database.tamper(
    'update signing_key set private_sealed = (select private_sealed from signing_key where kid = ?) where kid <> ?',
    kid,
    kid,
  );
  const { findings, total } = await reportOf('sealed values');
  expect(total).toBe(1);
  expect(findings[0]).toMatchObject({
    says: `private_sealed cannot be decrypted; it was encrypted with key ${keyring.keyId}`,
    table: 'signing_key',
  });
  expect(findings[0]?.ids).not.toContain(kid);
});

test('doctor reports every state of a signing key', async () => {
  const { clock, db } = service;
  const { engine, keyring } = db;
  const rotate = () => rotateSigningKey(engine.access, keyring, clock);
  const first = (await engine.access.state(undefined))?.signingKeys[0]?.kid ?? '';
  const { kid: second, signsFrom } = await rotate();
  const states = async () => new Map((await reportOf('signing keys')).facts.map((fact) => split(fact)));
  const split = (fact: string): [string, string] => [fact.slice(0, 36), fact.slice(37)];
  expect(await states()).toEqual(
    new Map([
      [first, 'signs'],
      [second, 'signs later'],
    ]),
  );
  clock.advance(signsFrom - clock.now());
  expect(await states()).toEqual(
    new Map([
      [first, 'accepted'],
      [second, 'signs'],
    ]),
  );
  clock.advance(LIMITS.tokenLifetimeSecondsMax * 1_000 + LIMITS.clockLeewayMs);
  const { kid: third } = await rotate();
  await withdrawSigningKey(third, engine.access, keyring, clock);
  expect(await states()).toEqual(
    new Map([
      [first, 'retired'],
      [second, 'signs'],
      [third, 'withdrawn'],
    ]),
  );
  expect(isHealthy(await reportOf('signing keys'))).toBe(true);
});

test('of two signing keys with the same start, doctor reports one as signing and the other as accepted', async () => {
  const { clock, db } = service;
  const [first] = (await db.engine.access.state(undefined))?.signingKeys ?? [];
  const second = await mintSigningKey(db.keyring, clock, first?.signsFrom ?? 0);
  const auditEntry = createAuditEntry('signing-key.created', { object: second.kid, detail: {} }, clock);
  await db.engine.access.insertSigningKey(second, { supersededBefore: 0 }, auditEntry);
  const { facts } = await reportOf('signing keys');
  expect(facts.map((fact) => fact.slice(37)).sort()).toEqual(['accepted', 'signs']);
});

test('doctor finds a signing key without its private key, and the absence of an active one', async () => {
  const { access } = service.db.engine;
  const kid = (await access.state(undefined))?.signingKeys[0]?.kid ?? '';
  await access.deletePrivateKeys([kid]);
  const { findings } = await reportOf('signing keys');
  expect(findings).toEqual([
    { says: 'the private key is missing: rotate the signing key', table: 'signing_key', ids: [kid] },
  ]);
  await service.database.tamper('update signing_key set withdrawn_at = 1');
  const none = await reportOf('signing keys');
  expect([messagesOf(none), none.facts, none.unchecked]).toEqual([
    ['no signing key is active: the next start creates one'],
    [`${kid} withdrawn`],
    undefined,
  ]);
});
