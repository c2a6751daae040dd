import type { MarkdownIt, MarkdownState, OutputPage, Token } from '@11ty/eleventy';
import { render } from 'preact-render-to-string';
import { CodeBlock } from '../console/openapi/code.tsx';

/** How the markdown of the documents becomes HTML: anchors as on a code host, links of the site, blocks with a copy button. */

/** A part of a page: a heading, or the start of the page, with the text up to the next heading. */
export interface Section {
  /** Empty for the start of the page. */
  readonly anchor: string;
  readonly heading: string;
  readonly level: number;
  text: string;
}

export interface MarkdownPage {
  /** Undefined if the target is not in the site. */
  resolve(href: string): string | undefined;
  /** Receives the sections in order. */
  readonly sections: Section[];
}

export function extendMarkdown(library: MarkdownIt, pageOf: (page: OutputPage) => MarkdownPage): void {
  // Eleventy disables indented code; code hosts have it.
  library.enable('code');
  library.core.ruler.push('site', ({ tokens, env }: MarkdownState) => {
    const page = pageOf(env.page);
    readSections(tokens, page.sections);
    markEmptyHeadings(tokens);
    labelCells(tokens);
    markEntries(tokens);
    for (const { children } of tokens) resolveLinks(children ?? [], page);
  });
  const { rules } = library.renderer;
  rules.fence = (tokens, index) => codeBlock(tokens[index]);
  rules.code_block = (tokens, index) => codeBlock(tokens[index]);
  rules.code_inline = (tokens, index) => inlineCode(tokens[index]?.content ?? '');
  rules.table_open = () => '<div class="table"><table>';
  rules.table_close = () => '</table></div>';
}

function codeBlock(token: Token | undefined): string {
  if (token === undefined) return '';
  const { content, info } = token;
  const block = <CodeBlock text={content.replace(/\n$/, '')} what="the code" isJson={info === 'json'} />;
  // Long lines scroll, also by keyboard.
  return render(block).replace('<pre>', '<pre tabindex="0">');
}

/** Paths and names of variables wrap between their parts. */
function inlineCode(text: string): string {
  const parts = text.split(/(?<=[/_.,:=&(])(?=[^/_.,:=&(])/);
  return `<code>${parts.map((part) => Bun.escapeHTML(part)).join('<wbr>')}</code>`;
}

function readSections(tokens: readonly Token[], sections: Section[]): void {
  const used = new Map<string, number>();
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const heading = textOf(tokens[index + 1]);
      const anchor = uniqueAnchor(heading, used);
      token.attrSet('id', anchor);
      sections.push({ anchor, heading, level: Number(token.tag.slice(1)), text: '' });
    } else if (tokens[index - 1]?.type !== 'heading_open') {
      const section = sections.at(-1);
      if (section !== undefined) section.text += ` ${textOf(token)}`;
    }
  }
}

function textOf(token: Token | undefined): string {
  if (token === undefined || token.type === 'html_block') return '';
  if (token.children === null || token.children.length === 0) return token.content;
  return token.children
    .map((child) => (['softbreak', 'hardbreak'].includes(child.type) ? ' ' : child.content))
    .join('');
}

/** The anchor of a heading as code hosts make it; a repeated one is numbered. */
function uniqueAnchor(heading: string, used: Map<string, number>): string {
  const anchor = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
  const count = used.get(anchor) ?? 0;
  used.set(anchor, count + 1);
  return count === 0 ? anchor : `${anchor}-${count}`;
}

/** An empty heading of a column is a plain cell: a screen reader would read out a heading without a name. */
function markEmptyHeadings(tokens: readonly Token[]): void {
  for (const [index, token] of tokens.entries()) {
    const close = tokens[index + 2];
    if (token.type !== 'th_open' || tokens[index + 1]?.content !== '' || close === undefined) continue;
    token.tag = 'td';
    close.tag = 'td';
  }
}

/** Where a row has no room, its cells stand below each other, each after the heading of its column. */
function labelCells(tokens: readonly Token[]): void {
  let headings: string[] = [];
  let column = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'table_open') headings = [];
    if (token.type === 'tr_open') column = 0;
    if (token.type === 'th_open') headings.push(textOf(tokens[index + 1]));
    if (token.type === 'td_open') {
      const heading = headings[column];
      if (heading && column > 0) token.attrSet('data-heading', heading);
      column += 1;
    }
  }
}

/** The entry of a reference is a paragraph that starts with a bold name in code. */
function markEntries(tokens: readonly Token[]): void {
  for (const [index, token] of tokens.entries())
    if (token.type === 'paragraph_open' && tokens[index + 1]?.content.startsWith('**`'))
      token.attrSet('class', 'entry');
}

/** Links without a target become plain text. */
function resolveLinks(tokens: readonly Token[], { resolve }: MarkdownPage): void {
  let isPlain = false;
  for (const token of tokens) {
    if (token.type === 'image') token.attrSet('src', resolve(token.attrGet('src') ?? '') ?? '');
    if (token.type === 'link_open') {
      const target = resolve(token.attrGet('href') ?? '');
      isPlain = target === undefined;
      if (target !== undefined) token.attrSet('href', target);
      token.hidden = isPlain;
    }
    if (token.type === 'link_close') token.hidden = isPlain;
  }
}
