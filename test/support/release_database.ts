import { expect } from 'bun:test';
import { chmodSync, chownSync, copyFileSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from './folder.ts';
import { type RunningCommand, startCommand } from './processes.ts';
import { unpackRelease } from './release_tree.ts';
import { type ClientSecret, requestToken } from './token_request.ts';

/** The database that an earlier release wrote, with what a client finds in it. */

const RELEASES = join(import.meta.dir, '../fixtures/releases');

/** A record as that release exported it. */
export interface ReleaseLine {
  readonly type: string;
  readonly id: string;
  readonly realm_id: string;
  readonly user_authentication_info_id: string;
  readonly [member: string]: unknown;
}

export function exportOf(release: string): string {
  return readFileSync(join(RELEASES, release, 'export.jsonl'), 'utf8');
}

export function linesOf(release: string): readonly ReleaseLine[] {
  return exportOf(release)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ReleaseLine);
}

export function clientOf(release: string): ClientSecret {
  return JSON.parse(readFileSync(join(RELEASES, release, 'client.json'), 'utf8'));
}

/** Copies database and key into a folder, for a user if one is given, and returns the path of the database. */
export function copyReleaseDatabase(release: string, folder: string, uid?: number): string {
  const path = join(folder, 'authrealm.db');
  for (const ending of ['', '.key']) {
    copyFileSync(join(RELEASES, release, `authrealm.db${ending}`), path + ending);
    chmodSync(path + ending, 0o600);
    if (uid !== undefined) chownSync(path + ending, uid, uid);
  }
  return path;
}

/** The URL on which a started `serve` listens. */
export async function urlOf(service: RunningCommand): Promise<string> {
  return /http\S+/.exec(await service.line(/^listening/))?.[0] ?? '';
}

/** The client of the release gets a token and finds both links, by ID and by their values. Returns the headers of its requests. */
export async function findLinks(release: string, url: string): Promise<Readonly<Record<string, string>>> {
  const headers = { Authorization: `Bearer ${await requestToken(url, clientOf(release))}` };
  const links = linesOf(release).filter(({ type }) =>
    /^user_authentication_(oidc|password)_profile_info$/.test(type),
  );
  expect(links.length).toBe(2);
  for (const { type, id, realm_id, user_authentication_info_id: user, ...members } of links) {
    const collection = type.replaceAll('_', '-');
    const realm = `${url}/v2/authentication-realms/${realm_id}`;
    const one = await fetch(`${realm}/user-authentication-info/${user}/${collection}/${id}`, { headers });
    const { data } = (await one.json()) as { data: Record<string, unknown> };
    expect([one.status, { ...members, ...data, id, type }]).toEqual([200, { ...data, ...members, id, type }]);
    const terms = members.username
      ? [`eq(username,${members.username})`]
      : [`eq(issuer,${members.issuer})`, `eq(subject,${members.subject})`];
    const found = await fetch(`${realm}/${collection}?filter=${encodeURIComponent(terms.join(':'))}`, {
      headers,
    });
    const page = (await found.json()) as { data: { id: string }[] };
    expect(page.data.map((item) => item.id)).toEqual([id]);
  }
  return headers;
}

/** Serves a copy of the database with a command of this release, and then with the older release again. */
export async function upgradeAndGoBack(release: string, ...command: readonly string[]): Promise<void> {
  const path = copyReleaseDatabase(release, freshFolder());
  const service = startCommand([...command, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
  await findLinks(release, await urlOf(service));
  expect(await service.stop()).toBe(0);
  await goBack(release, path);
}

/** Replaces the database by the copy of before its upgrade (UPGRADING.md, "How to go back"). */
export function restoreSchema1(path: string): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
  renameSync(`${path}.schema-1`, path);
}

/** Goes back, and lets the older release serve what it wrote. */
export async function goBack(release: string, path: string): Promise<void> {
  restoreSchema1(path);
  const authrealm = join(await unpackRelease(release), 'bin/authrealm');
  const service = startCommand([authrealm, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
  await findLinks(release, await urlOf(service));
  expect(await service.stop()).toBe(0);
}
