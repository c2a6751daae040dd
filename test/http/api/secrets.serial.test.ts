import { expect, test } from 'bun:test';
import { testInProcess } from '../../support/program_service.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  type Kind,
  OFFLINE,
  uniqueWord,
} from '../../support/resource_cases.ts';
import { startService } from '../../support/service.ts';

/** Client secrets and passwords are not in any response, log line or, unencrypted, in the database. */

const responses: string[] = [];

const service = await startService({ ...OFFLINE, requestLogging: 'full' });
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

async function recordResponse(answer: Response): Promise<Response> {
  responses.push(JSON.stringify([...answer.headers]), await answer.clone().text());
  return answer;
}

/** Sends secrets in every valid and invalid way, and records the responses. Returns the secrets. */
async function sendSecrets(kind: Kind, name: string): Promise<readonly string[]> {
  const secrets = Array.from({ length: 6 }, (_, index) => uniqueWord(`secret-to-look-for-${name}-${index}`));
  const [created, changed, refused, reused, conflicting, wrong] = secrets as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const { type } = kind.resource;
  const collection = kind.collection(home);
  const made = await createRecord(service, token, { kind, home, data: { [name]: created } });
  const key = { 'Idempotency-Key': uniqueWord('key') };
  const data = { ...kind.fresh(home), [name]: reused };
  await recordResponse(await service.get(made.path, token));
  await recordResponse(await service.get(collection, token));
  await recordResponse(await service.put(made.path, token, { data: { type, [name]: changed } }));
  await recordResponse(await service.get(made.path, token));
  await recordResponse(await service.post(collection, token, { data: { [name]: refused } }));
  await recordResponse(await service.put(made.path, token, { data: { type, [name]: { is: refused } } }));
  await recordResponse(await service.post(collection, token, { data }, key));
  await recordResponse(await service.post(collection, token, { data }, key));
  await recordResponse(await service.post(collection, token, { data: { ...data, [name]: wrong } }, key));
  await recordResponse(
    await service.put(made.path, token, { data: { type, id: uniqueWord('id'), [name]: conflicting } }),
  );
  await recordResponse(await service.put(made.path, token, `{"data":{"${name}":"${wrong}"`));
  responses.push(JSON.stringify(made.body));
  return secrets;
}

testInProcess('no secret is returned, logged or stored unencrypted', async () => {
  const [, login, , , , name] = KINDS;
  const secrets = [...(await sendSecrets(login, 'client_secret')), ...(await sendSecrets(name, 'password'))];
  const places = { responses: responses.join('\n'), log: JSON.stringify(service.log) };
  expect(service.log.length).toBeGreaterThan(20);
  for (const [place, text] of Object.entries(places)) {
    for (const secret of secrets)
      expect([place, secret, text.includes(secret)]).toEqual([place, secret, false]);
  }
  // Hashes and ciphertexts are not returned either.
  expect(await service.database.findPlaintext([...secrets, '$argon2id$'])).toEqual(['$argon2id$']);
  expect(
    /argon2|client_secret":|"password":|password_hash|password_normalised|sealed/.exec(places.responses),
  ).toBeNull();
  expect(/argon2|auth0|example\.com/.exec(places.log)).toBeNull();
});

test('a password is hashed after normalization, with the configured cost', async () => {
  const name = KINDS[5];
  const { id } = await createRecord(service, token, {
    kind: name,
    home,
    data: { password: 'ｐａｓｓｗｏｒｄ１２３' },
  });
  const snapshot = await service.db.engine.records.openSnapshot();
  try {
    const found = await snapshot.scan(name.resource, { realm: '', id: '' }, 1_000);
    const record = found.find(({ record }) => record.id === id)?.record;
    expect(record?.password_normalised).toBe(true);
    expect(String(record?.password_hash)).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$');
    expect(await Bun.password.verify('password123', String(record?.password_hash))).toBe(true);
    expect(await Bun.password.verify('ｐａｓｓｗｏｒｄ１２３', String(record?.password_hash))).toBe(false);
  } finally {
    snapshot.close();
  }
});
