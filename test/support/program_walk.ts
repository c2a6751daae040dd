import { expect } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { oidcProfileInfo, passwordProfileInfo } from '../../src/model/resources.ts';
import { VERSION } from '../../src/model/version.ts';
import { type Environment, type RunningCommand, runCommand, startCommand } from './processes.ts';
import { createParents, createRecord, FULL_SCOPE, kindOf } from './resource_cases.ts';
import { type HttpClient, ISSUER, openHttpClient, retryWhenOverloaded } from './service.ts';
import { type ClientSecret, requestToken } from './token_request.ts';

/** What every artefact of a release must do. */

export interface WalkedProgram {
  /** The words that start it. */
  readonly command: readonly string[];
  /** Where it keeps its database. */
  readonly folder: string;
  /** The path of that folder outside, where the program has its own root. */
  readonly outside?: string;
  readonly environment?: Environment;
}

/** A program that serves a new database. */
export interface ServedProgram extends HttpClient {
  readonly url: string;
  readonly running: RunningCommand;
  readonly token: string;
}

/** The issuer of a profile that a service without access to its provider derives. */
const OFFLINE_ISSUER = ISSUER.slice(0, -1);

const databaseArguments = (folder: string) => ['--database', `sqlite:${join(folder, 'walk.db')}`];

/** Creates a database and a client with the program and serves it. Throws where a command fails. */
async function serveNewDatabase(
  { command, folder, environment }: WalkedProgram,
  ...flags: readonly string[]
): Promise<ServedProgram> {
  const database = databaseArguments(folder);
  const create = ['client', 'create', '--name', 'walk', '--scope', FULL_SCOPE, '--json', ...database];
  const serve = ['serve', '--port', '0', '--offline', ...flags, ...database];
  const running = startCommand([...command, ...serve], environment);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const made = await runCommand([...command, ...create], environment);
  if (made.code !== 0) throw new Error(made.stderr);
  const token = await requestToken(url, JSON.parse(made.stdout) as ClientSecret);
  return { url, running, token, ...retryWhenOverloaded(openHttpClient(url)) };
}

/** Creates a link, one to a username with a password, and looks it up. */
async function lookUp(
  service: ServedProgram,
  resource: typeof oidcProfileInfo | typeof passwordProfileInfo,
): Promise<void> {
  const home = await createParents(service, service.token);
  const data = resource === oidcProfileInfo ? { issuer: OFFLINE_ISSUER } : {};
  const { path, body } = await createRecord(service, service.token, { kind: kindOf(resource), home, data });
  const answer = await service.get(path, service.token);
  expect([answer.status, await answer.json()]).toEqual([200, body]);
}

/** Creates a database, serves it, looks up a link to a provider and loads the console: what needs no worker process. */
export async function walkWithoutWorkers(program: WalkedProgram): Promise<void> {
  const service = await serveNewDatabase(program);
  await lookUp(service, oidcProfileInfo);
  await loadConsole(service);
  expect(await service.running.stop()).toBe(0);
}

/** Loads both pages with everything that they name, and the document of the API. */
async function loadConsole({ url }: Pick<ServedProgram, 'url'>): Promise<void> {
  for (const page of ['/console', '/docs']) {
    const answer = await fetch(url + page);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html;charset=utf-8']);
    const names = [...(await answer.text()).matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) expect([name, (await fetch(`${url}/${name}`)).status]).toEqual([name, 200]);
  }
  const { info } = (await (await fetch(`${url}/openapi.json`)).json()) as { info: { version: string } };
  expect(info.version).toBe(VERSION);
}

/**
 * From the version to a backup: creates a database, serves it in two processes, looks up both kinds of links, sets a password, loads
 * the console, inspects the database, copies it. Each kind of worker process runs once.
 */
export async function walkProgram(program: WalkedProgram): Promise<void> {
  const { command, folder, environment } = program;
  const run = (...words: readonly string[]) =>
    runCommand([...command, ...words, ...databaseArguments(folder)], environment);
  expect(await runCommand([...command, '--version'], environment)).toEqual({
    stdout: `${VERSION}\n`,
    stderr: '',
    code: 0,
  });
  expect(await run('init')).toMatchObject({ stderr: '', code: 0 });
  const service = await serveNewDatabase(program, '--processes', '2');
  for (const resource of [oidcProfileInfo, passwordProfileInfo]) await lookUp(service, resource);
  await loadConsole(service);
  const doctor = await run('doctor');
  expect([doctor.stdout.match(/^ +[!-] .*/gm), doctor.stderr, doctor.code]).toEqual([null, '', 0]);
  expect(await run('backup', '--into', folder)).toMatchObject({ stderr: '', code: 0 });
  expect(readdirSync(program.outside ?? folder).filter((name) => /^walk-.*\.db$/.test(name))).toHaveLength(1);
  expect(await service.running.stop()).toBe(0);
}
