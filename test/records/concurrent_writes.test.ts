import { afterAll, describe, expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  type Kind,
  type ParentIds,
  type RecordBody,
  uniqueWord,
  userPath,
} from '../support/resource_cases.ts';
import { sendWithRetry } from '../support/retry.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** Concurrent writers, through four processes on one database. */

const PROCESSES = 4;
const database = await freshDatabase();

const flags = ['--processes', String(PROCESSES), '--offline'];
const service = await startServiceProcess({ database, scope: FULL_SCOPE, flags });
const token = await service.token();
const home = await createParents(service, token);
afterAll(async () => {
  expect(await service.running.stop()).toBe(0);
  expect(await database.findInconsistencies()).toEqual([]);
}, 300_000);

const [, oidcProfiles, , users, identities] = KINDS;

/** The number of answers with each status. */
function countByStatus(answers: readonly Response[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The processes that answered, by their part of the request ID. */
function processesOf(answers: readonly Response[]): ReadonlySet<string | undefined> {
  return new Set(answers.map(({ headers }) => headers.get('x-request-id')?.split('-')[0]));
}

async function countOf(sql: string, ...values: string[]): Promise<number> {
  const [row] = await database.query<{ n: number }>(`select count(*) as n from ${sql}`, ...values);
  return row?.n ?? -1;
}

test('of 200 concurrent creates of one identity, one is answered with 201 and the others with 422', async () => {
  const subject = uniqueWord('contested');
  const homes = await Promise.all(
    Array.from({ length: 4 }, async () => {
      return { ...home, user: (await createRecord(service, token, { kind: users, home })).id };
    }),
  );
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) => {
      const where = homes[index % homes.length] as ParentIds;
      const body = { data: { ...identities.fresh(where), subject } };
      return sendWithRetry(() => service.withoutRetry.post(identities.collection(where), token, body));
    }),
  );
  expect(countByStatus(answers)).toEqual({ 201: 1, 422: 199 });
  expect(processesOf(answers).size).toBe(PROCESSES);
  expect(await countOf('oidc_profile_info where subject = ?', subject)).toBe(1);
}, 300_000);

test('50 concurrent requests with one idempotency key create one record', async () => {
  const data = identities.fresh(home);
  const headers = { 'Idempotency-Key': uniqueWord('key') };
  const send = () => service.withoutRetry.post(identities.collection(home), token, { data }, headers);
  const answers = await Promise.all(Array.from({ length: 50 }, () => sendWithRetry(send)));
  expect(processesOf(answers).size).toBe(PROCESSES);
  const made = answers.filter(({ status }) => status === 201);
  // A process sees its own requests in flight, and only the committed requests of the others.
  expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([]);
  expect(made.length).toBeGreaterThan(0);
  const ids = await Promise.all(made.map(async (answer) => ((await answer.json()) as RecordBody).data.id));
  expect(new Set(ids).size).toBe(1);
  expect(new Set(made.map(({ headers }) => headers.get('etag'))).size).toBe(1);
  expect(await countOf('oidc_profile_info where subject = ?', data.subject as string)).toBe(1);
}, 300_000);

const STEPS_MIN = 6;
const ATTEMPTS_MAX = 40;

test('of 100 concurrent writers with If-Match, every success had the preceding version', async () => {
  const { path: at, etag } = await createRecord(service, token, { kind: users, home });
  const steps: { readonly before: string; readonly after: string; readonly name: string }[] = [];
  const writers = Array.from({ length: 100 }, async (_, writer) => {
    // In every round at least one of the concurrent writers has the current version.
    for (let attempt = 0; attempt < 4 || (attempt < ATTEMPTS_MAX && steps.length < STEPS_MIN); attempt += 1) {
      const before = (await service.get(at, token)).headers.get('etag') ?? '';
      const name = `Writer ${writer}, attempt ${attempt}`;
      const put = { data: { type: users.resource.type, name } };
      const answer = await sendWithRetry(() =>
        service.withoutRetry.put(at, token, put, { 'If-Match': before }),
      );
      expect([200, 412]).toContain(answer.status);
      if (answer.status === 412) continue;
      steps.push({ before, after: answer.headers.get('etag') ?? '', name });
      return;
    }
  });
  await Promise.all(writers);
  const last = await service.get(at, token);
  // The steps form one chain from the first version to the last.
  const next = new Map(steps.map((step) => [step.before, step]));
  expect(next.size).toBe(steps.length);
  let [current, count, name] = [etag, 0, ''];
  for (let step = next.get(current); step; step = next.get(current)) {
    [current, count, name] = [step.after, count + 1, step.name];
  }
  expect(count).toBe(steps.length);
  expect(count).toBeGreaterThanOrEqual(STEPS_MIN);
  expect(last.headers.get('etag')).toBe(current);
  expect(((await last.json()) as RecordBody).data.name).toBe(name);
}, 300_000);

describe('a parent deleted during 50 concurrent creates leaves no orphans', () => {
  const CHILDREN = 50;
  const ROUNDS = 4;

  /** Creates children, and deletes the parent halfway; returns the statuses of both. */
  async function createDuringRemoval(parent: string, child: Kind, where: ParentIds) {
    const create = () => service.post(child.collection(where), token, { data: child.fresh(where) });
    const early = Array.from({ length: CHILDREN / 2 }, create);
    const removal = service.del(parent, token);
    const late = Array.from({ length: CHILDREN / 2 }, create);
    const answers = await Promise.all([...early, ...late]);
    const made = countByStatus(answers);
    outcomes.created += made[201] ?? 0;
    outcomes.refused += CHILDREN - (made[201] ?? 0);
    return { removed: (await removal).status, made };
  }

  /** Over all rounds: a removal before or after all the creates would prove nothing. */
  const outcomes = { created: 0, refused: 0 };
  afterAll(() => {
    expect(outcomes.created).toBeGreaterThan(0);
    expect(outcomes.refused).toBeGreaterThan(0);
  });

  /** The number of rows in any table that name this record. */
  async function countReferences(id: string): Promise<number> {
    const tables = [
      'oidc_profile',
      'password_profile',
      'user_info',
      'oidc_profile_info',
      'password_profile_info',
    ];
    let found = 0;
    for (const table of tables) {
      const columns = table.endsWith('_info') && table !== 'user_info' ? ['user_id'] : [];
      if (table === 'oidc_profile_info') columns.push('oidc_profile_id');
      const names = ['realm_id', 'id', ...columns].map((column) => `${column} = ?1`);
      found += await countOf(`${table} where ${names.join(' or ')}`, id);
    }
    return found;
  }

  test('a user deleted during 50 creates of its links leaves no orphans', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id } = await createRecord(service, token, { kind: users, home });
      const where = { ...home, user: id };
      const { removed, made } = await createDuringRemoval(userPath(where), identities, where);
      expect(removed).toBe(204);
      expect([(made[201] ?? 0) + (made[404] ?? 0), await countReferences(id)]).toEqual([CHILDREN, 0]);
    }
  }, 300_000);

  test('a profile deleted during 50 creates of links that refer to it leaves no orphans', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id, path: parent } = await createRecord(service, token, { kind: oidcProfiles, home });
      const { removed, made } = await createDuringRemoval(parent, identities, { ...home, oidcProfile: id });
      expect(removed).toBe(204);
      expect([(made[201] ?? 0) + (made[422] ?? 0), await countReferences(id)]).toEqual([CHILDREN, 0]);
    }
  }, 300_000);

  test('a realm deleted during 50 creates of its users leaves no orphans', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const where = await createParents(service, token);
      const { removed, made } = await createDuringRemoval(
        `/v2/authentication-realms/${where.realm}`,
        users,
        where,
      );
      expect(removed).toBe(204);
      expect([(made[201] ?? 0) + (made[404] ?? 0), await countReferences(where.realm)]).toEqual([
        CHILDREN,
        0,
      ]);
    }
  }, 300_000);
});
