import { join } from 'node:path';
import { findPaths, USERS_PATH } from '../../test/support/population.ts';
import { fetchToken } from '../access_token.ts';
import { fillByImport } from '../import_rate.ts';
import { keyFileIn, writeKeyFile } from '../key_file.ts';
import { LINK_REQUESTS, PERSON_BODY, personPaths, TWO_LINK_PERSON_BODY, USER_BODY } from '../person.ts';
import { type CreateRequest, type Peer, type PeerContext, runToEnd } from './peer.ts';

const CHECKOUT = join(import.meta.dir, '../..');
const PATHS = 10_000;

interface Version {
  /** The checkout that is served. */
  readonly checkout: string;
  readonly name: string;
  /** The bodies of a create. */
  readonly create: Pick<CreateRequest, 'body' | 'links'>;
  readonly readsPersons: boolean;
}

/** This checkout, as a peer among the others. A create is of a user with one link, or with two. */
export function authrealm(engine: Peer['engine'], links: 1 | 2 = 1): Peer {
  const body = links === 1 ? PERSON_BODY : TWO_LINK_PERSON_BODY;
  return version(engine, { checkout: CHECKOUT, name: 'authrealm', create: { body }, readsPersons: true });
}

/** Another checkout of this repository, with its own dependencies, from before users were read and created with their links. */
export async function baseline(checkout: string, engine: Peer['engine']): Promise<Peer> {
  const commit = await runToEnd(['git', '-C', checkout, 'rev-parse', '--short=8', 'HEAD']);
  return {
    ...version(engine, {
      checkout,
      name: `authrealm ${commit.trim()}, ${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`,
      create: { body: USER_BODY, links: LINK_REQUESTS },
      readsPersons: false,
    }),
    creates: 'a user with two links by three requests, where this version makes one',
    ownLinks: 2,
  };
}

function version(engine: Peer['engine'], { checkout, name, create, readsPersons }: Version): Peer {
  const program = join(checkout, 'bin/authrealm');
  const flags = ({ database, folder }: PeerContext): string[] => [
    ...['--database', engine === 'sqlite' ? `sqlite:${database}` : database],
    ...['--master-key-file', keyFileIn(folder)],
  ];
  return {
    name,
    engine,
    warmUpSeconds: 5,
    ...(readsPersons && { answers: 'the user and all links' }),
    async prepare(context) {
      writeKeyFile(context.folder);
      await fillByImport(program, flags(context), context.users, context.userOf);
      return {
        command: [program, 'serve', '--port', String(context.port), ...flags(context)],
        environment: {},
      };
    },
    fill: () => Promise.resolve(),
    async workload(context) {
      const { port, users, userOf } = context;
      const token = await fetchToken(program, flags(context), `http://127.0.0.1:${port}`);
      const paths = Math.min(PATHS, users);
      return {
        token,
        ...(readsPersons && { reads: personPaths(users, paths, userOf) }),
        // Every second one: those by subject and issuer.
        reverse: findPaths(users, paths * 2).filter((path) => path.includes('oidc')),
        create: { path: USERS_PATH, ...create },
      };
    },
  };
}
