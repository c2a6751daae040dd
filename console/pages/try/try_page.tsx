import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { BASE } from '../../api/call_api.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { useShortcuts } from '../../layout/keys.tsx';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href, keepQuery, place } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { CodeBlock, formatted, Prose } from '../../openapi/code.tsx';
import type { Operation } from '../../openapi/document.ts';
import { OperationList, OperationSearch } from '../../openapi/operation_list.tsx';
import { badgeOf, Description, OperationLine } from '../../openapi/operation_parts.tsx';
import { readApi } from '../../openapi/read_api.ts';
import { curlOf, type Draft, draftOf, requestOf, slotsOf } from '../../openapi/request.ts';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty } from '../../parts/notices.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import { endSession, type SessionState, session } from '../../session/session.ts';
import { RequestForm } from './request_form.tsx';
import { type Outcome, send } from './send_request.ts';

const hrefOf = ({ id }: Operation) => href('try', id);

/** Every operation that can be tried. */
export function TryListPage() {
  const asked = useAsked(readApi, []);
  const [sought, setSought] = useState(place.get().query.get('words') ?? '');
  useEffect(() => keepQuery({ words: sought }), [sought]);
  const seek = () => document.querySelector<HTMLInputElement>('.find-operation input')?.focus();
  useShortcuts(useMemo(() => [{ keys: '/', words: 'Find an operation', act: seek }], []));
  return (
    <>
      <PageHead
        title="Try it"
        actions={
          <a class="button" href="docs">
            <Icon name="docs" /> API reference
          </a>
        }
      />
      <OperationSearch sought={sought} onSought={setSought} />
      <Answered asked={asked}>
        {({ groups }) => <OperationList groups={groups} sought={sought} hrefOf={hrefOf} />}
      </Answered>
    </>
  );
}

/** One operation, with the token of this session. */
export function TryPage({ parameters: { operation: id = '' } }: PageProps) {
  const asked = useAsked(readApi, []);
  const operation = asked.answer?.operations.get(id);
  const words = operation?.summary.replace(/\.$/, '');
  return (
    <>
      <PageHead
        title={words ?? 'Try it'}
        heading={words === undefined ? undefined : <Prose text={words} />}
        above={[{ label: 'Try it', href: href('try') }]}
        actions={
          operation && (
            <a class="button" href={`docs${href(id)}`}>
              <Icon name="docs" /> Reference
            </a>
          )
        }
      />
      <Answered asked={asked}>
        {() =>
          operation ? (
            <Trial operation={operation} />
          ) : (
            <Empty icon="try" title="This release has no such operation">
              <p>
                <a href={href('try')}>See all operations</a>
              </p>
            </Empty>
          )
        }
      </Answered>
    </>
  );
}

interface OperationProps {
  readonly operation: Operation;
}

function Trial({ operation }: OperationProps) {
  const state = useObserved(session);
  const slots = useMemo(() => slotsOf(operation), [operation]);
  const [draft, setDraft] = useState(() => draftFrom(operation, place.get().query));
  const { outcome, failure, isBusy, run, stop } = useSending();
  const request = requestOf(operation, draft, location.origin + BASE);
  const lacking = lackingOf(operation, state);
  const submit = (event: Event) => {
    event.preventDefault();
    if (lacking === undefined) run(operation, draft, state.open?.token);
  };
  const answer = useRef<HTMLElement>(null);
  const isTold = outcome !== undefined || failure !== undefined;
  useEffect(() => keepQuery(keptOf(draft)), [draft]);
  useEffect(() => {
    if (isTold) bringIntoView(answer.current);
  }, [isTold]);
  return (
    <>
      <OperationLine operation={operation} />
      <Description operation={operation} />
      <div class="trial">
        <section class="card" aria-label="Request">
          <h2>Request</h2>
          <form class="form" noValidate onSubmit={submit}>
            <RequestForm slots={slots} draft={draft} onDraft={setDraft} />
            {lacking === undefined ? (
              <div class="actions">
                <button
                  type="submit"
                  class={operation.method === 'DELETE' ? 'button button-danger' : 'button button-main'}
                  disabled={isBusy}
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
                  This session lacks the scope <code>{lacking}</code> for this operation.
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

/** Below a long request, on a narrow screen, the answer would come unseen. */
function bringIntoView(element: HTMLElement | null): void {
  if (element && element.getBoundingClientRect().top > innerHeight / 2) element.scrollIntoView();
}

/** The scope that a session lacks for an operation. */
function lackingOf({ scopes = [] }: Operation, { open }: SessionState): string | undefined {
  return scopes.find((scope) => !open?.scopes.has(scope));
}

/** The examples of the document, and over them what the address says. */
function draftFrom(operation: Operation, query: URLSearchParams): Draft {
  const draft = draftOf(operation);
  const said = slotsOf(operation).flatMap(({ key }) => {
    const value = query.get(key);
    return value === null ? [] : [[key, value] as const];
  });
  return { ...draft, values: { ...draft.values, ...Object.fromEntries(said) } };
}

/** Of a request what may stand in an address: its path and its query. */
function keptOf({ values }: Draft): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([key]) => /^(path|query)\./.test(key)));
}

function useSending() {
  const [outcome, setOutcome] = useState<Outcome>();
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
      const request = requestOf(operation, draft, BASE);
      await send(request, token, { signal: controller.signal, tell: setOutcome });
    } catch (error) {
      if (!controller.signal.aborted) setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return { outcome, failure, isBusy, run, stop: () => sending.current?.abort() };
}

/** Browsers have no words for most of what can go wrong. */
function wordsOf(error: unknown): string {
  const { message } = error as Error;
  return /header|ISO-8859-1|ByteString/i.test(message)
    ? 'Header values must be printable ASCII.'
    : 'No response: the service is unreachable or closed the connection.';
}

/** An answer as it came: status, time, headers and body. */
function ResponseView({ outcome }: { readonly outcome: Outcome }) {
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
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                <code>
                  <Said text={value} />
                </code>
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}
