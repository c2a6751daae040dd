import { CodeBlock, formatted } from '../../openapi/code_block.tsx';
import { badgeOf } from '../../openapi/operation_parts.tsx';
import { Said } from '../../parts/said.tsx';
import { endSession } from '../../session/session.ts';
import type { Outcome } from './sending.ts';

/** An answer as it came: status, time, headers and body. */
export function ResponseView({ outcome }: { readonly outcome: Outcome }) {
  const { status, statusText, headers, text, headMs, wholeMs, isCut } = outcome;
  const body = formatted(text);
  return (
    <div class="stack">
      <p class="response-line">
        <span class={`badge ${badgeOf(status)}`}>
          {status === 0 ? 'a redirect, which is not followed' : `${status} ${statusText}`}
        </span>
        <span class="faint small">
          {Math.round(wholeMs ?? headMs)} ms{wholeMs === undefined ? ', more may come' : ''}
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
      {isCut && <p class="faint small">The rest is not shown: ask with the command for all of it.</p>}
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
