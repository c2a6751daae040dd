import { render } from 'preact-render-to-string';
import { Prose } from '../console/openapi/code.tsx';
import { type Api, type ApiDocument, apiOf, type Operation } from '../console/openapi/document.ts';
import { OperationList } from '../console/openapi/operation_list.tsx';
import { OperationReference } from '../console/openapi/operation_parts.tsx';
import type { SitePage } from './layout.tsx';
import { relativePath } from './pages.ts';

/** The pages of the API document: a list of all operations, and a page for each. */

export interface ApiPage extends SitePage {
  readonly html: string;
  /** What the search finds. */
  readonly text: string;
  readonly operationId: string | undefined;
}

export const API_INDEX: SitePage = { path: 'api/index.html', title: 'HTTP API' };

/** Where the service of the examples listens: the default of `authrealm serve`. */
export const EXAMPLE_BASE_URL = 'http://127.0.0.1:8080';

const pathOf = ({ id }: Operation) => `api/${id}.html`;
const titleOf = ({ summary }: Operation) => summary.replace(/\.$/, '');

export function apiPages(document: object): { readonly api: Api; readonly pages: readonly ApiPage[] } {
  const api = apiOf(document as ApiDocument);
  return {
    api,
    pages: [indexPage(api), ...[...api.operations.values()].map((each) => operationPage(api, each))],
  };
}

function indexPage({ document: { info }, groups }: Api): ApiPage {
  const html = render(
    <>
      <h1>HTTP API</h1>
      {info.description !== undefined && (
        <p>
          <Prose text={info.description} />
        </p>
      )}
      <p>
        <a href="openapi.json">openapi.json</a> is the document of release {info.version}; a running service
        has it at <code>/openapi.json</code>, and the same pages as these, where requests can be tried, at{' '}
        <code>/docs</code>. The examples use a service at <code>{EXAMPLE_BASE_URL}</code>.
      </p>
      <p>
        Programs in JavaScript can use <a href="../client.html">the client library</a>; for other languages,{' '}
        <a href="../client.html#in-other-languages">generate a client</a>. The rules that all operations share
        are in <a href="../wire.html">the wire contract</a>.
      </p>
      <OperationList
        groups={groups}
        term=""
        hrefOf={(operation) => relativePath(API_INDEX.path, pathOf(operation))}
      />
    </>,
  );
  return { ...API_INDEX, html, text: info.description ?? '', operationId: undefined };
}

function operationPage({ document }: Api, operation: Operation): ApiPage {
  const title = titleOf(operation);
  const html = render(
    <>
      <h1>
        <Prose text={title} />
      </h1>
      {operation.scopes !== undefined && (
        <p class="small faint">
          Set the environment variable <code>TOKEN</code> to{' '}
          <a href="../guides/clients-and-tokens.html#get-a-token">an access token</a>. The IDs are examples:
          replace them with yours.
        </p>
      )}
      <OperationReference document={document} operation={operation} base={`${EXAMPLE_BASE_URL}/`} />
    </>,
  );
  const { id, method, path, description = '' } = operation;
  return {
    ...{ path: pathOf(operation), title: title.replaceAll('`', ''), html, operationId: id },
    text: `${method} ${path} ${description}`,
  };
}

/** The operations by group, for the menu of the API's pages. */
export function ApiNavigation({ api, current }: { readonly api: Api; readonly current: ApiPage }) {
  return (
    <OperationList
      groups={api.groups}
      term=""
      hrefOf={(operation) => relativePath(current.path, pathOf(operation))}
      current={current.operationId}
      isNarrow={true}
    />
  );
}
