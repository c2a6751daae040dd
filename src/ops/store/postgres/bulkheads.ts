import { LIMITS } from '../../../model/limits.ts';
import type { MaybePromise, OverloadChecks } from '../../../model/store.ts';
import { throwPostgresFault } from '../../../sql/postgres/connection.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
import type { RealmStores } from './stores.ts';

/** Each node can answer this from its metadata. */
const SELECT_NODE = `select groupid::text as node from pg_dist_placement
  where shardid = get_shard_id_for_distribution_column('realm_clock', $1::uuid)`;

/**
 * Caches the nodes of realms. The node of a moved realm is looked up again within LIMITS.realmNodesAgeMsMax; until then its
 * requests are queued with those of its previous node.
 */
export function openRealmNodes(pool: ConnectionPool, now: () => number = () => performance.now()) {
  const nodes = new Map<string, string>();
  let since = now();
  return {
    /** The cached node of a realm. */
    known(realm: string): string | undefined {
      if (now() - since > LIMITS.realmNodesAgeMsMax || nodes.size >= LIMITS.realmNodesCachedMax) {
        nodes.clear();
        since = now();
      }
      return nodes.get(realm);
    },
    /** Looks it up. Rejects with Fault `unavailable`. */
    async find(realm: string): Promise<string> {
      const { rows } = await pool.query(SELECT_NODE, [realm]).catch(throwPostgresFault);
      const node = String(rows[0]?.node);
      nodes.set(realm, node);
      return node;
    },
  };
}

/**
 * Stores of a cluster with a bulkhead for each node: connections and queues for the realms on it, so that work which waits for a
 * slow node delays no other. Work in several realms, or in all, uses the `shared` ones.
 */
export function openBulkheads(
  shared: RealmStores,
  nodes: ReturnType<typeof openRealmNodes>,
  open: () => RealmStores,
): RealmStores {
  const opened = new Map<string, RealmStores>();

  const ofNode = (node: string) => opened.getOrInsertComputed(node, open);

  async function within<T>(
    realms: readonly string[],
    work: (stores: RealmStores) => MaybePromise<T>,
  ): Promise<T> {
    const [realm, ...others] = new Set(realms);
    if (realm === undefined || others.length > 0) return work(shared);
    return work(ofNode(nodes.known(realm) ?? (await nodes.find(realm))));
  }

  const isOverloaded = (kind: keyof OverloadChecks) => (realm: string | undefined) => {
    const node = realm === undefined ? undefined : nodes.known(realm.toLowerCase());
    const { records } = node === undefined ? shared : ofNode(node);
    return records.overloaded[kind]?.(realm) ?? false;
  };

  const records: RealmStores['records'] = {
    ...shared.records,
    get: (resource, key) => within([key[0]], (own) => own.records.get(resource, key)),
    getIncluding: (resource, key, children) =>
      within([key[0]], (own) => own.records.getIncluding(resource, key, children)),
    find: (resource, realm, lookup) => within([realm], (own) => own.records.find(resource, realm, lookup)),
    list: (resource, scope, listing) =>
      within(scope.slice(0, 1), (own) => own.records.list(resource, scope, listing)),
    changes: (realm, after, limit) => within([realm], (own) => own.records.changes(realm, after, limit)),
    countBelow: (resource, key) => within([key[0]], (own) => own.records.countBelow(resource, key)),
    loadIdempotencyRecord: (key, now) =>
      within([key.realm], (own) => own.records.loadIdempotencyRecord(key, now)),
    commit: (writes, answer) =>
      within([...writes.map(({ key }) => key[0]), ...(answer ? [answer.realm] : [])], (own) =>
        own.records.commit(writes, answer),
      ),
    load: (loads, stopAtFirst) =>
      within(
        loads.map(({ write }) => write.key[0]),
        (own) => own.records.load(loads, stopAtFirst),
      ),
    removePage: (removal) => within([removal.key[0]], (own) => own.records.removePage(removal)),
    erase: (request) => within([request.key[0]], (own) => own.records.erase(request)),
    overloaded: { write: isOverloaded('write'), get: isOverloaded('get'), find: isOverloaded('find') },
  };
  const credentials: RealmStores['credentials'] = {
    find: (realm, profile, username) =>
      within([realm], (own) => own.credentials.find(realm, profile, username)),
    get: (realm, user, id) => within([realm], (own) => own.credentials.get(realm, user, id)),
    hasPassword: (realm, user, id) => within([realm], (own) => own.credentials.hasPassword(realm, user, id)),
    rehash: (credential, made, auditEntry) =>
      within([credential.realmId], (own) => own.credentials.rehash(credential, made, auditEntry)),
    hashKinds: (realm, profile) => within([realm], (own) => own.credentials.hashKinds(realm, profile)),
  };
  const feed: RealmStores['feed'] = {
    heads: (after, limit, only) => within(only ?? [], (own) => own.feed.heads(after, limit, only)),
    userChanges: (user, before, limit) =>
      within([user.realm], (own) => own.feed.userChanges(user, before, limit)),
  };
  const budgets: RealmStores['budgets'] = {
    ...shared.budgets,
    fullAt: (realm, keys) => within([realm], (own) => own.budgets.fullAt(realm, keys)),
    take: (realm, takes) => within([realm], (own) => own.budgets.take(realm, takes)),
    latestOfName: (realm, name) => within([realm], (own) => own.budgets.latestOfName(realm, name)),
    removeName: (realm, name) => within([realm], (own) => own.budgets.removeName(realm, name)),
  };
  return { records, credentials, feed, budgets };
}
