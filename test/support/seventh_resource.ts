import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrationsOf } from '../../src/sql/migrations.ts';
import { freshDatabase } from './database.ts';
import { realmLines } from './import_fixtures.ts';
import type { Json, JsonObject } from './json_schema.ts';
import {
  type Operation,
  type OperationResponse,
  openOperationClient,
  operationsOf,
} from './openapi_client.ts';
import {
  type Environment,
  type RunningCommand,
  runAuthrealm,
  runClientCreate,
  runCommand,
  startCommand,
} from './processes.ts';
import { FULL_SCOPE, PASSWORD } from './resource_cases.ts';
import { freshFolder, ISSUER } from './service.ts';

/** A copy of the program with a seventh resource: one added description and migration. */
export interface ProgramCopy {
  readonly folder: string;
  /** The path of its command. */
  readonly authrealm: string;
  /** Imports one of its modules. */
  module<T>(path: string): Promise<T>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** It uses every feature of a description of a resource below a user. */
const DESCRIPTION = `export const device = resource({
  name: 'device',
  number: 7,
  type: 'device',
  collection: 'devices',
  table: 'device',
  parent: user,
  selfPrefix: '/v2',
  scope: 'devices',
  bodyId: 'own',
  protectedBy: 'pinned',
  extraLinks: { enrolment: '/oidc-idp/devices/{store}/{realm}/{id}?step=1' },
  filterables: {
    id: { compared: 'identifier', operators: ['eq', 'in'] },
    serial: { compared: 'exact', operators: ['eq', 'in'] },
    label: { compared: 'folded', operators: ['eq', 'like', 'ilike'] },
    note: { compared: 'folded', operators: ['eq', 'is_null'] },
    created_at: { compared: 'instant', operators: ['ge', 'lt'] },
  },
  reverseLookup: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq', 'in'] },
      serial: { compared: 'exact', operators: ['eq'] },
      label: { compared: 'folded', operators: ['eq'] },
    },
    by: [['serial'], ['label'], ['id']],
  },
  inputs: {
    pin: { schema: password(), hash: 'pin_hash', isNormalised: 'pin_normalised' },
  },
  summary: 'A device that a user signs in with.',
  words: ['device', 'devices'],
  members: {
    serial: annotate(text(64), { personal: true }),
    label: annotate(text(100), { foldedKeyColumn: true, personal: true }),
    note: annotate(text(255).nullable().default(null), { foldedKeyColumn: true, personal: true }),
    state: z.enum(['active', 'lost']).default('active'),
    transports: z.array(text(20)).max(4).default([]),
    address: httpUrl(255).optional(),
    password_profile_id: reference('password-profile'),
    attestation: annotate(text(4096).optional(), { secret: 'sealed', requiredOnCreate: true }),
    level: annotate(z.enum(['low', 'high']).default('low'), { within: 'meta', writableBy: 'none' }),
    maker: annotate(text(100).optional(), { within: 'relationships', writableBy: 'creator' }),
    pinned: annotate(z.boolean().default(false), { hidden: true, writableBy: 'none' }),
    pin_hash: annotate(passwordHash().optional(), { secret: 'plain', writableBy: 'none' }),
    pin_normalised: annotate(z.boolean().optional(), { secret: 'plain', writableBy: 'none' }),
  },
  unique: [['serial']],
});

`;

/** The columns of the table; those that end with `?` are nullable. */
const COLUMNS = {
  realm_id: 'realm',
  user_id: 'id',
  id: 'id',
  serial: 'text',
  label: 'text',
  note: 'text?',
  state: 'text',
  transports: 'text',
  address: 'text?',
  password_profile_id: 'id',
  attestation_sealed: 'bytes?',
  level: 'text',
  maker: 'text?',
  pinned: 'switch',
  pin_hash: 'text?',
  pin_normalised: 'switch?',
  label_key: 'text',
  note_key: 'text?',
  unicode_version: 'text',
  created_at: 'long',
  updated_at: 'long',
  revision: 'text',
} as const;

type Types = Readonly<Record<'realm' | 'id' | 'text' | 'bytes' | 'switch' | 'long', string>>;

const SQLITE: Types = {
  realm: 'integer',
  id: 'blob',
  text: 'text',
  bytes: 'blob',
  switch: 'integer',
  long: 'integer',
};
const POSTGRES: Types = {
  realm: 'uuid',
  id: 'uuid',
  text: 'text collate "C"',
  bytes: 'bytea',
  switch: 'integer',
  long: 'bigint',
};

const columnsIn = (types: Types) =>
  Object.entries(COLUMNS).map(([name, kind]) => {
    const [of = ''] = kind.split('?');
    return { name, type: types[of as keyof Types], null: kind.endsWith('?') ? '' : ' not null' };
  });

const INDEXES = `create unique index device_serial on device (realm_id, serial);
create index device_of_user on device (realm_id, user_id, created_at, id);
create index device_of_password_profile on device (realm_id, password_profile_id, created_at, id);
create index device_by_label on device (realm_id, label_key);
`;

/** The migration of an engine, with its key and options of the table. */
const migration = (types: Types, key: string, options = '') => `create table device (
${columnsIn(types)
  .map((column) => `  ${column.name} ${column.type}${column.null},\n`)
  .join('')}  ${key},
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, password_profile_id) references password_profile (realm_id, id)
)${options};

${INDEXES}`;

/** A program that uses the client library: it compiles if the library derives the resource from its description. */
const CALLER = `import { connect } from './src/client/client.ts';

const { devices } = connect({ url: 'http://127.0.0.1', token: async () => '' });

export async function states(): Promise<readonly ('active' | 'lost')[]> {
  const input = { serial: 's', label: 'l', password_profile_id: 'p', attestation: 'a', pin: 'correct horse' };
  const made = await devices.create(['realm', 'user'], input);
  const changed = await devices.update(made.key, { state: 'lost', note: null, transports: ['usb'] });
  const [found] = await devices.find('realm', { label: 'l' });
  return [made.state, changed.state, found?.state ?? 'active'];
}
`;

/** The files of the copy: those to compile it and to check its consistency. */
const COPIED_PATHS = [
  'bin',
  'src',
  'package.json',
  'tsconfig.json',
  'test/support/consistency.ts',
  'test/support/log_rows.ts',
];

/** The start of the list of all descriptions, and its last entry. */
const LIST = '/**\n * All resources, parents before children';
const LAST = '  passwordProfileInfos: passwordProfileInfo,\n';

export async function createSevenResourceProgram(): Promise<ProgramCopy> {
  const folder = freshFolder();
  mkdirSync(join(folder, 'test/support'), { recursive: true });
  for (const path of COPIED_PATHS) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'caller.ts'), CALLER);

  const descriptions = join(folder, 'src/model/resources.ts');
  const six = readFileSync(descriptions, 'utf8');
  for (const anchor of [LIST, LAST]) {
    if (six.split(anchor).length !== 2) throw new Error(`resources.ts has not one ${anchor}`);
  }
  const seven = six.replace(LIST, DESCRIPTION + LIST).replace(LAST, `${LAST}  devices: device,\n`);
  writeFileSync(descriptions, seven);
  const store = join(folder, 'src/sql');
  const added = {
    sqlite: migration(SQLITE, 'slot integer not null primary key,\n  unique (realm_id, id)', ' strict'),
    postgres: migration(POSTGRES, 'primary key (realm_id, id)'),
  };
  for (const engine of ['sqlite', 'postgres'] as const) {
    const migrations = join(store, engine, 'migrations');
    mkdirSync(migrations, { recursive: true });
    // As a release freezes it, without the seventh resource.
    writeFileSync(join(migrations, '0001_directory.sql'), migrationsOf(engine)[0]?.sql ?? '');
    writeFileSync(join(migrations, '0002_device.sql'), added[engine]);
  }

  return {
    folder,
    authrealm: join(folder, 'bin/authrealm'),
    module: (path) => import(join(folder, path)),
  };
}

/** A database of the program without the seventh resource, with one record of each other resource. */
export async function createSixResourceDatabase() {
  const database = await freshDatabase();
  const made = await runClientCreate(database, FULL_SCOPE, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  const { ids, lines, all } = realmLines();
  // `doctor` reports no link whose issuer is spelled as that of its profile.
  Object.assign(lines.link, { issuer: ISSUER.slice(0, -1) });
  const text = all.map((line) => JSON.stringify(line)).join('\n');
  const imported = await runAuthrealm(['import', '-', ...database.args], {}, text);
  if (imported.code !== 0) throw new Error(imported.stderr);
  return { database, ids, lines };
}

export const SCOPES = `${FULL_SCOPE} devices:read devices:write`;
export const SECRET = 'attested-by-nobody-else';

/** The input of an operation; `id`, user and realm are by default those of the imported lines. */
export interface RequestInput {
  readonly id?: string;
  readonly path?: Readonly<Record<string, string>>;
  readonly data?: Json;
  readonly body?: Json;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string | undefined;
}

export type ShownRecord = Readonly<Record<string, Json>> & { readonly id: string };

/** A service with seven resources, in a separate process. */
export interface SevenResourceService {
  readonly url: string;
  readonly running: RunningCommand;
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  /** Environment variables of a command that calls this service. */
  readonly environment: Environment;
  /** A token of its client, with these scopes. */
  requestToken(scope: string): Promise<string>;
  /** Sends a request of a documented operation, and validates the response. */
  send(operation: string, input?: RequestInput): Promise<OperationResponse>;
  /** The unique `data` of a valid POST of a device. */
  newDevice(more?: Readonly<Record<string, Json>>): Record<string, Json>;
  createDevice(more?: Readonly<Record<string, Json>>, path?: RequestInput['path']): Promise<ShownRecord>;
}

/** Serves a database of six resources with the program of seven, which migrates it. */
export async function startSevenResourceService(
  { authrealm }: ProgramCopy,
  { database: { args }, ids }: Awaited<ReturnType<typeof createSixResourceDatabase>>,
): Promise<SevenResourceService> {
  const running = startCommand([authrealm, 'serve', '--port', '0', '--offline', ...args]);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const created = [authrealm, 'client', 'create', '--json', '--name', 'n', '--scope', SCOPES, ...args];
  const { client_id, client_secret } = JSON.parse((await runCommand(created)).stdout);
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as JsonObject;
  const operations = operationsOf(document);
  const caller = openOperationClient(document);
  const token = await granted(SCOPES);
  let count = 0;

  async function granted(scope: string): Promise<string> {
    const form = { grant_type: 'client_credentials', scope, client_id, client_secret };
    const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
    return ((await answer.json()) as { access_token: string }).access_token;
  }

  function send(name: string, input: RequestInput = {}): Promise<OperationResponse> {
    const operation = operations.find(({ id }) => id === name);
    if (!operation) throw new Error(`the document has no ${name}`);
    const {
      id = ids.name,
      path: more,
      data,
      body = data === undefined ? undefined : { data },
      ...rest
    } = input;
    const all = { path: { realm_id: ids.realm, user_id: ids.user, id, ...more }, token, ...rest };
    return caller.send(operation, body === undefined ? all : { ...all, body });
  }

  function fresh(more: Readonly<Record<string, Json>> = {}): Record<string, Json> {
    count += 1;
    return {
      type: 'device',
      serial: `serial-number-${count}`,
      label: `Jane’s Handy ${count}`,
      password_profile_id: ids.passwords,
      attestation: SECRET,
      pin: PASSWORD,
      ...more,
    };
  }

  return {
    ...{ url, running, document, operations, requestToken: granted, send, newDevice: fresh },
    environment: {
      AUTHREALM_URL: url,
      AUTHREALM_CLIENT_ID: client_id,
      AUTHREALM_CLIENT_SECRET: client_secret,
    },
    async createDevice(more, above) {
      const made = await send('create-device', { data: fresh(more), ...(above ? { path: above } : {}) });
      if (made.status !== 201) throw new Error(made.text);
      return (made.body as unknown as { data: ShownRecord }).data;
    },
  };
}
