import { BASE } from '../api/caller.ts';
import { PageHead } from '../layout/head.tsx';
import type { Api, Operation } from '../openapi/document.ts';
import { OperationList } from '../openapi/operation_list.tsx';
import { Prose } from '../openapi/prose.tsx';
import { Copy } from '../parts/copy.tsx';
import { Fact } from '../parts/facts.tsx';

interface OverviewProps {
  readonly api: Api;
  readonly hrefOf: (operation: Operation) => string;
}

/** What the API is, where it is, and everything it can do. */
export function Overview({ api, hrefOf }: OverviewProps) {
  const { info } = api.document;
  const base = location.origin + BASE.replace(/\/$/, '');
  return (
    <>
      <PageHead
        title={`${info.title} API`}
        actions={
          <a class="button" href="openapi.json">
            openapi.json
          </a>
        }
      />
      {info.description !== undefined && (
        <p class="prose">
          <Prose text={info.description} />
        </p>
      )}
      <section class="card overview-facts" aria-label="Where and how">
        <dl class="facts">
          <Fact label="Base URL">
            <span class="identifier">
              <code>{base}</code>
              <Copy text={base} what="the base URL" />
            </span>
          </Fact>
          <Fact label="Release">{info.version}</Fact>
          <Fact label="Token">
            <Prose text="`Authorization: Bearer …`, from " />
            <a href="#/get-access-token">the token endpoint</a>, for client credentials.
          </Fact>
        </dl>
      </section>
      <OperationList groups={api.groups} sought="" hrefOf={hrefOf} />
    </>
  );
}
