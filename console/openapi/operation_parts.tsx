import { CodeBlock, Prose } from './code.tsx';
import {
  type ApiDocument,
  type Content,
  exampleOf,
  type Header,
  type Operation,
  resolveReference,
} from './document.ts';
import { draftOf, requestOf } from './request.ts';
import { RequestExamples } from './request_examples.tsx';
import { MemberRow, SchemaTree } from './schema_tree.tsx';

interface OperationProps {
  readonly document: ApiDocument;
  readonly operation: Operation;
}

/** One operation: request in four languages, answer, parameters, and folded the schemas of body and responses. `base` ends with a slash. */
export function OperationReference({
  document,
  operation,
  base,
}: OperationProps & { readonly base: string }) {
  return (
    <>
      <OperationLine operation={operation} />
      <Description {...operation} />
      <RequestExamples request={requestOf(operation, draftOf(operation), base)} />
      <Answer operation={operation} />
      <Parameters document={document} operation={operation} />
      <RequestBody document={document} operation={operation} />
      <Responses document={document} operation={operation} />
    </>
  );
}

export function Method({ method }: Pick<Operation, 'method'>) {
  return <span class={`method method-${method.toLowerCase()}`}>{method}</span>;
}

/** Method, path and required scopes. */
export function OperationLine({ operation }: Pick<OperationProps, 'operation'>) {
  const { method, path, scopes, isExtension } = operation;
  return (
    <div class="operation-line">
      <p class="operation-path">
        <Method method={method} /> <code>{path}</code>
      </p>
      <p class="operation-rights">
        {scopes === undefined ? (
          <span class="badge">no token required</span>
        ) : (
          scopes.map((scope) => (
            <span key={scope} class="badge">
              scope {scope}
            </span>
          ))
        )}
        {scopes?.length === 0 && <span class="badge">any token</span>}
        {isExtension && <span class="badge">extension</span>}
      </p>
    </div>
  );
}

export function Description({ description }: { readonly description?: string | undefined }) {
  if (description === undefined) return null;
  return (
    <p class="prose">
      <Prose text={description} />
    </p>
  );
}

/** The example of the answer to a successful request. */
function Answer({ operation }: Pick<OperationProps, 'operation'>) {
  const success = operation.responses.find(({ status }) => status.startsWith('2'));
  const [content] = Object.values(success?.response.content ?? {});
  const example = content && exampleOf(content);
  if (example === undefined) return null;
  return (
    <section class="section" aria-label="Answer">
      <h2>Answer</h2>
      <Example example={example} />
    </section>
  );
}

const PLACES = [
  ['path', 'In the path'],
  ['query', 'In the query'],
  ['header', 'In headers'],
] as const;

function Parameters({ document, operation }: OperationProps) {
  if (operation.parameters.length === 0) return null;
  return (
    <section class="section" aria-label="Parameters">
      <h2>Parameters</h2>
      {PLACES.map(([place, words]) => {
        const parameters = operation.parameters.filter((each) => each.in === place);
        if (parameters.length === 0) return null;
        return (
          <section key={place} class="card" aria-label={words}>
            <h3>{words}</h3>
            <ul class="schema">
              {parameters.map(({ required = false, schema = {}, ...parameter }) => (
                <MemberRow
                  key={parameter.name}
                  {...parameter}
                  {...{ document, schema }}
                  isRequired={required}
                />
              ))}
            </ul>
          </section>
        );
      })}
    </section>
  );
}

function RequestBody({ document, operation }: OperationProps) {
  const { body } = operation;
  if (!body) return null;
  return (
    <section class="section" aria-label="Body">
      <h2>Body</h2>
      <ContentCard document={document} mediaType={body.mediaType} content={body.content} />
    </section>
  );
}

function Responses({ document, operation }: OperationProps) {
  return (
    <section class="section" aria-label="Responses">
      <h2>Responses</h2>
      <div class="answers">
        {operation.responses.map(({ status, response }) => (
          <details key={status} class="answer">
            <summary>
              <span class={`badge ${badgeOf(Number(status))}`}>{status}</span>{' '}
              <span>
                <Prose text={response.description} />
              </span>
            </summary>
            {Object.entries(response.content ?? {}).map(([mediaType, content]) => (
              <ContentCard key={mediaType} document={document} mediaType={mediaType} content={content} />
            ))}
            <Headers document={document} headers={response.headers ?? {}} />
          </details>
        ))}
      </div>
    </section>
  );
}

/** The badge style of a status. */
export function badgeOf(status: number): string {
  if (status < 300) return 'badge-good';
  return status < 400 ? '' : status < 500 ? 'badge-warn' : 'badge-danger';
}

function Headers({
  document,
  headers,
}: Pick<OperationProps, 'document'> & {
  readonly headers: Operation['responses'][number]['response']['headers'];
}) {
  const entries = Object.entries(headers ?? {});
  if (entries.length === 0) return null;
  return (
    <details class="headers">
      <summary>Headers</summary>
      <dl class="facts small">
        {entries.map(([name, header]) => {
          const { description = '', example } = resolveReference<Header>(document, header);
          return (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                <Prose text={description} /> {example !== undefined && <code>{String(example)}</code>}
              </dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}

interface ContentCardProps {
  readonly document: ApiDocument;
  readonly mediaType: string;
  readonly content: Content;
}

function ContentCard({ document, mediaType, content }: ContentCardProps) {
  const example = exampleOf(content);
  return (
    <div class="content">
      <details>
        <summary>Schema of {mediaType}</summary>
        {content.schema && <SchemaTree document={document} schema={content.schema} />}
      </details>
      {example !== undefined && (
        <div class="content-example">
          <h3>Example</h3>
          <Example example={example} />
        </div>
      )}
    </div>
  );
}

function Example({ example }: { readonly example: unknown }) {
  const isJson = typeof example !== 'string';
  const text = isJson ? JSON.stringify(example, null, 2) : example;
  return <CodeBlock text={text} what="the example" isJson={isJson} />;
}
