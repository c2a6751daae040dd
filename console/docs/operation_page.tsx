import { BASE } from '../api/caller.ts';
import { PageHead } from '../layout/head.tsx';
import { href } from '../layout/router.ts';
import { CodeBlock } from '../openapi/code_block.tsx';
import type { Api, Operation } from '../openapi/document.ts';
import {
  Description,
  OperationLine,
  Parameters,
  RequestBody,
  Responses,
} from '../openapi/operation_parts.tsx';
import { Prose } from '../openapi/prose.tsx';
import { curlOf, draftOf, requestOf } from '../openapi/request.ts';
import { Icon } from '../parts/icon.tsx';

interface OperationPageProps {
  readonly api: Api;
  readonly operation: Operation;
}

/** One operation: what it takes, and what it answers. */
export function OperationPage({ api: { document }, operation }: OperationPageProps) {
  const curl = curlOf(requestOf(operation, draftOf(operation), location.origin + BASE));
  return (
    <>
      <PageHead
        title={operation.summary.replace(/\.$/, '')}
        heading={<Prose text={operation.summary.replace(/\.$/, '')} />}
        above={[{ label: 'API', href: '#/' }]}
        actions={
          <a class="button button-main" href={`console${href('try', operation.id)}`}>
            <Icon name="try" /> Try it
          </a>
        }
      />
      <OperationLine operation={operation} />
      <Description operation={operation} />
      <CodeBlock text={curl} what="the command" />
      <Parameters document={document} operation={operation} />
      <RequestBody document={document} operation={operation} />
      <Responses document={document} operation={operation} />
    </>
  );
}
