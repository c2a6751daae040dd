import { learningOf, type Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';
import type { Answer } from './call.ts';
import { type EverywhereRooms, searchEverywhere } from './everywhere.ts';
import { find, search, searchList } from './finding.ts';
import {
  collectionPattern,
  discoveryPattern,
  everywherePattern,
  findingPattern,
  itemPatterns,
  searchPattern,
} from './links.ts';
import { list } from './lists.ts';
import { create, remove, update, type WritingRooms } from './operations.ts';
import { lookup } from './pipeline.ts';
import { type InspectingRooms, inspectProvider } from './provider_documents.ts';
import { faultReply } from './reply.ts';
import type { Route } from './router.ts';

/** What every path of a resource is built from. */
export type ResourceRooms = WritingRooms & EverywhereRooms & InspectingRooms;

/** Every path of every resource: five verbs, the reverse lookup of those that have one, and searches. */
export function resourceRoutes(rooms: ResourceRooms): readonly Route[] {
  return RESOURCES.flatMap((resource) => [
    ...collectionRoutes(resource, rooms),
    ...itemRoutes(resource, rooms),
    ...findingRoutes(resource, rooms),
    ...searchRoutes(resource, rooms),
    ...discoveryRoutes(resource, rooms),
    ...unofferedRoutes(resource),
  ]);
}

function collectionRoutes(resource: Resource, rooms: ResourceRooms): readonly Route[] {
  const answers = { GET: list(resource, rooms), POST: create(resource, rooms) };
  return [{ pattern: collectionPattern(resource), answers }];
}

function itemRoutes(resource: Resource, rooms: ResourceRooms): readonly Route[] {
  const answers = {
    GET: lookup(resource, rooms),
    PUT: update(resource, rooms),
    DELETE: remove(resource, rooms),
  };
  return itemPatterns(resource).map((pattern) => ({ pattern, answers }));
}

function findingRoutes(resource: Resource, rooms: ResourceRooms): readonly Route[] {
  if (!resource.finding) return [];
  return [{ pattern: findingPattern(resource), answers: { GET: find(resource, rooms) } }];
}

function searchRoutes(resource: Resource, rooms: ResourceRooms): readonly Route[] {
  const { finding, everywhere } = resource;
  const pattern = searchPattern(resource);
  const inRealm = finding ? search(resource, rooms) : searchList(resource, rooms);
  return [
    ...(pattern === undefined ? [] : [{ pattern, answers: { POST: inRealm } }]),
    ...(everywhere
      ? [
          {
            pattern: everywherePattern(resource),
            answers: { POST: searchEverywhere(resource, everywhere, rooms) },
          },
        ]
      : []),
  ];
}

function discoveryRoutes(resource: Resource, rooms: ResourceRooms): readonly Route[] {
  const [pattern, learning] = [discoveryPattern(resource), learningOf(resource)];
  if (pattern === undefined || !learning) return [];
  return [{ pattern, answers: { GET: inspectProvider(resource, learning, rooms) } }];
}

/** Where further links of a record lead: there is nothing yet, and the answer says so (contract 8, row 31). */
function unofferedRoutes(resource: Resource): readonly Route[] {
  const notOffered: Answer = () => faultReply('not_offered');
  return Object.values(resource.moreLinks ?? {}).map((link) => ({
    pattern: (link.split('?')[0] ?? '').replace(/\{(\w+)\}/g, ':$1'),
    answers: { GET: notOffered },
  }));
}
