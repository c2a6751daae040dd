import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  FULL_SCOPE,
  type Home,
  KINDS,
  type Kind,
  make,
  OFFLINE,
  settle,
  word,
} from '../../support/resource_cases.ts';
import { type Service, startService } from '../../support/service.ts';

/** Client secrets and passwords go in and never come out: not in an answer, a log line or the database. */

let service: Service;
let token: string;
let home: Home;
const said: string[] = [];

beforeAll(async () => {
  service = await startService({ ...OFFLINE, requestLogging: 'full' });
  token = await service.token(FULL_SCOPE);
  home = await settle(service, token);
});
afterAll(() => service.stop());

async function keep(answer: Response): Promise<Response> {
  said.push(JSON.stringify([...answer.headers]), await answer.clone().text());
  return answer;
}

/** Sends a secret in every way there is, right and wrong ones; keeps every answer. */
async function tryAll(kind: Kind, name: string): Promise<readonly string[]> {
  const secrets = Array.from({ length: 6 }, (_, index) => word(`secret-to-look-for-${name}-${index}`));
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
  const made = await make(service, token, { kind, home, data: { [name]: created } });
  const key = { 'Idempotency-Key': word('key') };
  const data = { ...kind.fresh(home), [name]: reused };
  await keep(await service.get(made.path, token));
  await keep(await service.get(collection, token));
  await keep(await service.put(made.path, token, { data: { type, [name]: changed } }));
  await keep(await service.get(made.path, token));
  await keep(await service.post(collection, token, { data: { [name]: refused } }));
  await keep(await service.put(made.path, token, { data: { type, [name]: { is: refused } } }));
  await keep(await service.post(collection, token, { data }, key));
  await keep(await service.post(collection, token, { data }, key));
  await keep(await service.post(collection, token, { data: { ...data, [name]: wrong } }, key));
  await keep(await service.put(made.path, token, { data: { type, id: word('id'), [name]: conflicting } }));
  await keep(await service.put(made.path, token, `{"data":{"${name}":"${wrong}"`));
  said.push(JSON.stringify(made.body));
  return secrets;
}

test('no secret is ever shown, logged or stored in the clear', async () => {
  const [, login, , , , name] = KINDS as readonly Kind[] as [Kind, Kind, Kind, Kind, Kind, Kind];
  const secrets = [...(await tryAll(login, 'client_secret')), ...(await tryAll(name, 'password'))];
  const places = { said: said.join('\n'), log: JSON.stringify(service.log) };
  expect(service.log.length).toBeGreaterThan(20);
  for (const [place, text] of Object.entries(places)) {
    for (const secret of secrets)
      expect([place, secret, text.includes(secret)]).toEqual([place, secret, false]);
  }
  // What is made of them stays inside as well.
  expect(await service.database.stored([...secrets, '$argon2id$'])).toEqual(['$argon2id$']);
  expect(
    /argon2|client_secret":|"password":|password_hash|password_normalised|sealed/.exec(places.said),
  ).toBeNull();
  expect(/argon2|auth0|example\.com/.exec(places.log)).toBeNull();
});

test('a password is hashed after normalisation, with the cost that is set', async () => {
  const name = KINDS[5] as Kind;
  const { id } = await make(service, token, {
    kind: name,
    home,
    data: { password: 'ｐａｓｓｗｏｒｄ１２３' },
  });
  const picture = await service.db.engine.records.openSnapshot();
  try {
    const found = await picture.scan(name.resource, { realm: '', id: '' }, 1_000);
    const record = found.find(({ record }) => record.id === id)?.record;
    expect(record?.password_normalised).toBe(true);
    expect(String(record?.password_hash)).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$');
    expect(await Bun.password.verify('password123', String(record?.password_hash))).toBe(true);
    expect(await Bun.password.verify('ｐａｓｓｗｏｒｄ１２３', String(record?.password_hash))).toBe(false);
  } finally {
    picture.close();
  }
});
