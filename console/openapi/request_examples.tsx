import { Fragment } from 'preact';
import { useId } from 'preact/hooks';
import { CodeBlock } from './code.tsx';
import { examplesOf } from './languages.ts';
import type { HttpRequest } from './request.ts';

/** The request in each language. Radio buttons choose one, so the choice needs no script. */
export function RequestExamples({ request }: { readonly request: HttpRequest }) {
  const name = useId();
  return (
    <fieldset class="languages">
      <legend class="unseen">Language of the example</legend>
      {examplesOf(request).map(({ language, text }, index) => (
        <Fragment key={language}>
          <label class="language">
            <input type="radio" name={name} defaultChecked={index === 0} /> {language}
          </label>
          <div class="language-text">
            <CodeBlock text={text} what={`the request in ${language}`} />
          </div>
        </Fragment>
      ))}
    </fieldset>
  );
}
