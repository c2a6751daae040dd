import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { BASE_PATH } from '../../api/call_api.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { currentRoute, href, replaceQuery } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { CodeBlock, formatted, Prose } from '../../openapi/code.tsx';
import type { Operation } from '../../openapi/document.ts';
import { badgeOf, Description, OperationLine } from '../../openapi/operation_parts.tsx';
import { readApi } from '../../openapi/read_api.ts';
import { curlOf, type Draft, draftOf, requestFields, requestOf } from '../../openapi/request.ts';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, Loaded } from '../../parts/notices.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { endSession, type SessionState, session } from '../../session/session.ts';
import { RequestForm } from './request_form.tsx';
import { type ResponseState, send } from './send_request.ts';

/** Tries one operation with the token of the session. */
export function TryPage({ parameters: { operation: id = '' } }: PageProps) {
  const fetched = useFetch(readApi, []);
  const operation = fetched.answer?.operations.get(id);
  const label = operation?.summary.replace(/\.$/, '');
  return (
    <>
      <PageHead
        title={label ?? 'Try it'}
        heading={label === undefined ? undefined : <Prose text={label} />}
        breadcrumbs={[{ label: 'API', href: 'docs' }]}
        actions={
          operation && (
            <a class="button" href={`docs${href(id)}`}>
              <Icon name="docs" /> Reference
            </a>
          )
        }
      />
      <Loaded fetched={fetched}>
        {() =>
          operation ? (
            <OperationTester operation={operation} />
          ) : (
            <EmptyState icon="try" title="This release has no such operation">
              <p>
                <a href="docs">See all operations</a>
              </p>
            </EmptyState>
          )
        }
      </Loaded>
    </>
  );
}

interface OperationProps {
  readonly operation: Operation;
}

function OperationTester({ operation }: OperationProps) {
  const state = useObservable(session);
  const fields = useMemo(() => requestFields(operation), [operation]);
  const [draft, setDraft] = useState(() => draftFrom(operation, currentRoute.get().query));
  const { outcome, failure, isBusy, run, stop } = useSendRequest();
  const request = requestOf(operation, draft, location.origin + BASE_PATH);
  const missing = missingScope(operation, state);
  const isIncomplete = fields.some(({ place, key }) => place === 'path' && draft.values[key] === '');
  const submit = (event: Event) => {
    event.preventDefault();
    if (missing === undefined && !isIncomplete) run(operation, draft, state.open?.token);
  };
  const answer = useRef<HTMLElement>(null);
  // Until its body is there, the page may be too short to scroll to the response.
  const isComplete = outcome?.wholeMs !== undefined;
  const hasResult = outcome !== undefined || failure !== undefined;
  useEffect(() => replaceQuery(queryOf(draft)), [draft]);
  useEffect(() => {
    if (hasResult) scrollIntoViewIfBelow(answer.current);
  }, [hasResult, isComplete]);
  return (
    <>
      <OperationLine operation={operation} />
      <Description {...operation} />
      <div class="trial">
        <section class="card" aria-label="Request">
          <h2>Request</h2>
          <form class="form" noValidate onSubmit={submit}>
            <RequestForm {...{ operation, fields, draft }} onDraft={setDraft} />
            {missing === undefined ? (
              <div class="actions">
                <button
                  type="submit"
                  class={operation.method === 'DELETE' ? 'button button-danger' : 'button button-main'}
                  disabled={isBusy || isIncomplete}
                >
                  <Icon name="try" /> Send {operation.method}
                </button>
                {isBusy && (
                  <button type="button" class="button" onClick={stop}>
                    Stop
                  </button>
                )}
              </div>
            ) : (
              <p class="note">
                <span>
                  This session lacks the scope <code>{missing}</code> for this operation.
                </span>
              </p>
            )}
          </form>
          <h3 class="curl-head">curl command</h3>
          <CodeBlock text={curlOf(request)} what="the command" />
          {request.isSigned && (
            <p class="hint">
              It contains no token: set the variable <code>TOKEN</code>.
            </p>
          )}
        </section>
        <section ref={answer} class="card" aria-label="Response" aria-live="polite" aria-busy={isBusy}>
          <h2>Response</h2>
          {failure !== undefined && (
            <p class="note note-danger" role="alert">
              <Icon name="warning" /> {failure}
            </p>
          )}
          {outcome && <ResponseView outcome={outcome} />}
          {!outcome && failure === undefined && (
            <p class="faint">{isBusy ? 'Sending…' : 'No request sent yet.'}</p>
          )}
        </section>
      </div>
    </>
  );
}

/** On narrow screens the response would appear below the visible area. */
function scrollIntoViewIfBelow(element: HTMLElement | null): void {
  if (element && element.getBoundingClientRect().top > innerHeight / 4) element.scrollIntoView();
}

/** The scope that the session lacks for an operation. */
function missingScope({ scopes = [] }: Operation, { open }: SessionState): string | undefined {
  return scopes.find((scope) => !open?.scopes.has(scope));
}

/** The examples of the document, overridden by the address. */
function draftFrom(operation: Operation, query: URLSearchParams): Draft {
  const draft = draftOf(operation);
  const given = requestFields(operation).flatMap(({ key }) => {
    const value = query.get(key);
    return value === null ? [] : [[key, value] as const];
  });
  return { ...draft, values: { ...draft.values, ...Object.fromEntries(given) } };
}

/** Path and query parameters, which are safe in an address. */
function queryOf({ values }: Draft): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([key]) => /^(path|query)\./.test(key)));
}

function useSendRequest() {
  const [outcome, setOutcome] = useState<ResponseState>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const sending = useRef<AbortController>(undefined);
  useEffect(() => () => sending.current?.abort(), []);
  const run = async (operation: Operation, draft: Draft, token: string | undefined) => {
    const controller = new AbortController();
    sending.current = controller;
    setBusy(true);
    setFailure(undefined);
    setOutcome(undefined);
    try {
      const request = requestOf(operation, draft, BASE_PATH);
      await send(request, token, { signal: controller.signal, report: setOutcome });
    } catch (error) {
      if (!controller.signal.aborted) setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return { outcome, failure, isBusy, run, stop: () => sending.current?.abort() };
}

/** Browsers give no usable message for most failures. */
function wordsOf(error: unknown): string {
  const { message } = error as Error;
  return /header|ISO-8859-1|ByteString/i.test(message)
    ? 'Header values must be printable ASCII.'
    : 'No response: the service is unreachable or closed the connection.';
}

/** A response: status, time, headers and body. */
function ResponseView({ outcome }: { readonly outcome: ResponseState }) {
  const { status, statusText, headers, text, headMs, wholeMs, isCut } = outcome;
  const body = formatted(text);
  return (
    <div class="stack">
      <p class="response-line">
        <span class={`badge ${badgeOf(status)}`}>
          {status === 0 ? 'redirect (not followed)' : `${status} ${statusText}`}
        </span>
        <span class="faint small">
          {Math.round(wholeMs ?? headMs)} ms{wholeMs === undefined ? ', still receiving' : ''}
        </span>
      </p>
      {status === 401 && (
        <p class="note">
          <span>
            This session may have ended.{' '}
            <button type="button" class="text-button" onClick={() => endSession(undefined)}>
              Sign in again
            </button>
          </span>
        </p>
      )}
      {text === '' ? (
        <p class="faint">No body.</p>
      ) : (
        <CodeBlock text={body.text} what="the body" isJson={body.isJson} />
      )}
      {isCut && <p class="faint small">The response is truncated: use the command to get all of it.</p>}
      <details class="headers" open>
        <summary>Headers</summary>
        <dl class="facts">
          {headers.map(([name, value]) => (
            <Fact key={name} label={<code>{name}</code>}>
              <code>
                <UntrustedText text={value} />
              </code>
            </Fact>
          ))}
        </dl>
      </details>
    </div>
  );
}
