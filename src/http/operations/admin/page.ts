import { z } from 'zod';
import { LIMITS } from '../../../model/limits.ts';
import type { MaybePromise } from '../../../model/store.ts';
import { PAGE_PARAMETERS } from '../../openapi/parameters.ts';
import { followedMeta, pageLinks } from '../../openapi/schemas.ts';
import {
  type AdminDeps,
  type AdminDescription,
  type AdminRequest,
  type AnswerForm,
  adminOperation,
  EXAMPLE_CONTEXT,
} from './operation.ts';

/** The part of a list that is read. */
export interface PageRange {
  /** One more than the page length: the extra item shows that there is another page. */
  readonly limit: number;
  /** The ID that it starts after. */
  readonly after: string | undefined;
}

type Item = Readonly<Record<string, unknown>>;

interface FoundItems<From> {
  readonly items: readonly From[];
  /** Appended to links: `&user_id=…`. */
  readonly carried?: string;
}

/** A list whose pages follow an ID and are not counted. */
interface AdminList<From extends object, More extends z.ZodRawShape, Deps>
  extends Pick<
    AdminDescription<z.ZodObject, z.ZodObject, Deps, Item>,
    'name' | 'path' | 'summary' | 'description' | 'params' | 'faults'
  > {
  /** The form of the IDs of its items; UUIDs by default. */
  readonly idPattern?: RegExp;
  /** Parameters in addition to those of a page. */
  readonly query?: More;
  /** `id`: its component in the OpenAPI document. */
  readonly page: {
    readonly id: string;
    readonly description: string;
    readonly item: AnswerForm<From>;
  };
  read(
    range: PageRange,
    request: AdminRequest<z.output<z.ZodObject<More>>, unknown>,
    deps: Deps,
  ): MaybePromise<FoundItems<From>>;
}

const UUID_FORM = /^[0-9a-f-]{36}$/;

/** The operation of a list. */
export function listOperation<
  From extends object,
  More extends z.ZodRawShape = z.ZodRawShape,
  Deps extends Pick<AdminDeps, 'clock'> = AdminDeps,
>({ idPattern = UUID_FORM, query, page, read, ...described }: AdminList<From, More, Deps>) {
  const { path, params = {} } = described;
  const { item } = page;
  const examplePath = filledPath(path, (name) => params[name]?.example);
  return adminOperation<z.ZodObject, z.ZodObject, Item, Deps>({
    ...described,
    method: 'GET',
    query: z.object({ ...pageParameters(idPattern, String(item.example().id)), ...query }),
    success: {
      status: 200,
      description: page.description,
      show: (body) => body,
      schema: () =>
        z
          .strictObject({
            data: z.array(item.schema()).max(LIMITS.pageRecordsMax),
            meta: followedMeta,
            links: pageLinks,
          })
          .meta({ id: page.id }),
      example: () =>
        pageBody(
          [item.example()],
          { limit: LIMITS.pageRecordsDefault + 1, after: undefined },
          EXAMPLE_CONTEXT.urlOf(examplePath),
        ),
    },
    async handle(request, deps) {
      const { 'page[limit]': length = LIMITS.pageRecordsDefault, 'page[after]': after } = request.query;
      const range = { limit: Number(length) + 1, after: after ? String(after) : undefined };
      const found = await read(range, request as never, deps);
      const url = request.urlOf(filledPath(path, (name) => request.params[name]));
      const items = found.items.map((each) => item.show(each, request));
      return pageBody(items, range, url, found.carried);
    },
  });
}

function filledPath(path: string, textOf: (name: string) => string | undefined): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(textOf(name) ?? ''));
}

function pageParameters(pattern: RegExp, example: string) {
  const after = z
    .string()
    .refine((text) => text === '' || pattern.test(text), {
      error: 'must be empty, or an identifier of this list',
    })
    .optional()
    .meta({
      param: {
        description: 'Start after the item with this `id`, as in `links.next`. Empty for the first page.',
        example,
      },
    });
  return { 'page[limit]': PAGE_PARAMETERS['page[limit]'] as z.ZodType, 'page[after]': after };
}

/** A page of items that are in memory, ordered by ID. */
export function pageSlice<T>(
  items: readonly T[],
  idOf: (item: T) => string,
  { limit, after }: PageRange,
): readonly T[] {
  const sorted = [...items].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
  return sorted.filter((item) => after === undefined || idOf(item) > after).slice(0, limit);
}

function pageBody(found: readonly Item[], { limit, after }: PageRange, url: string, carried = ''): Item {
  const length = limit - 1;
  const data = found.slice(0, length);
  const at = (id: string) =>
    `${url}?page%5Blimit%5D=${length}&page%5Bafter%5D=${encodeURIComponent(id)}${carried}`;
  const last = data.at(-1);
  const next = found.length > length && last ? at(String(last.id)) : null;
  return {
    data,
    meta: { page: { limit: length } },
    links: { current: at(after ?? ''), first: at(''), last: null, next, prev: null },
  };
}
