import { join } from 'node:path';
import { findPaths, lookupPaths, USERS_PATH } from '../../test/support/population.ts';
import { fetchToken } from '../access_token.ts';
import { fillByImport } from '../import_rate.ts';
import { keyFileIn, writeKeyFile } from '../key_file.ts';
import { PERSON_BODY, personPaths } from '../person.ts';
import type { Peer, PeerContext } from './peer.ts';

const AUTHREALM = join(import.meta.dir, '../../bin/authrealm');
const PATHS = 10_000;

/** authrealm as a peer among the others. */
export function authrealm(engine: Peer['engine']): Peer {
  const flags = ({ database, folder }: PeerContext): string[] => [
    ...['--database', engine === 'sqlite' ? `sqlite:${database}` : database],
    ...['--master-key-file', keyFileIn(folder)],
  ];
  return {
    name: 'authrealm',
    engine,
    warmUpSeconds: 5,
    answers: 'the user and all links',
    async prepare(context) {
      writeKeyFile(context.folder);
      await fillByImport(AUTHREALM, flags(context), context.users, context.userOf);
      return {
        command: [AUTHREALM, 'serve', '--port', String(context.port), ...flags(context)],
        environment: {},
      };
    },
    fill: () => Promise.resolve(),
    async workload(context) {
      const { port, users, userOf } = context;
      const url = `http://127.0.0.1:${port}`;
      const token = await fetchToken(AUTHREALM, flags(context), url);
      const paths = Math.min(PATHS, users);
      return {
        token,
        reads: personPaths(users, paths, userOf),
        lookups: lookupPaths(users, paths, userOf),
        // Every second one: those by subject and issuer.
        reverse: findPaths(users, paths * 2).filter((path) => path.includes('oidc')),
        create: { path: USERS_PATH, body: PERSON_BODY },
      };
    },
  };
}
