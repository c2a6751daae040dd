import { z } from 'zod';
import { NIL_UUID, parseUuid } from '../../domain/id.ts';
import { identifier } from '../openapi_schemas.ts';
import { operation } from './operation.ts';
import { pageBody, pageParameters, pageSchema, wantedOf } from './page.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const LOG = 'https://idp.example/admin/v1/log';

const head = z
  .strictObject({
    id: identifier.meta({ description: 'The realm; the nil UUID for the log of the installation.' }),
    type: z.literal('log_head'),
    entries: z.int().min(0).meta({ description: 'How many entries were ever chained.' }),
    seq: z.int().min(0).meta({ description: 'The place of the last one.' }),
    tag: z
      .string()
      .nullable()
      .meta({ description: 'Its tag, in hexadecimal; null for a log without chained entries.' }),
    begins_after: z.int().min(0).meta({ description: 'The place behind which entries are still kept.' }),
  })
  .meta({ id: 'log_head' });

/** What was done, as it is kept: an entry for each act and each change, chained by tags. */
export const LOG_OPERATIONS = [
  operation({
    name: 'list-log-heads',
    method: 'GET',
    path: '/log/heads',
    summary: 'How far each log goes: that of the installation, then those of the realms.',
    query: z.object(pageParameters({ pattern: /^[0-9a-f-]{36}$/, example: REALM_ID })),
    success: {
      status: 200,
      description: 'The heads, in the order of their identifiers.',
      schema: pageSchema(head, 'log_head.page'),
      example: {
        data: [
          {
            id: NIL_UUID,
            type: 'log_head',
            entries: 1,
            seq: 1,
            tag: '5a'.repeat(32),
            begins_after: 0,
          },
        ],
        meta: { page: { limit: 25 } },
        links: {
          current: `${LOG}/heads?page%5Blimit%5D=25&page%5Bafter%5D=`,
          first: `${LOG}/heads?page%5Blimit%5D=25&page%5Bafter%5D=`,
          last: null,
          next: null,
          prev: null,
        },
      },
    },
    async act({ query, url }, { logStore, pageLength }) {
      const wanted = wantedOf(query, pageLength);
      const heads = await logStore.heads(parseUuid(wanted.after ?? ''), wanted.limit);
      const items = heads.map(({ log, seq, chain }) => ({
        id: log,
        type: 'log_head',
        entries: chain?.end.entries ?? 0,
        seq: chain?.end.seq ?? seq,
        tag: chain ? Buffer.from(chain.end.tag).toString('hex') : null,
        begins_after: chain?.anchor.seq ?? 0,
      }));
      return { body: pageBody(items, wanted, url('/log/heads')) };
    },
  }),
] as const;
