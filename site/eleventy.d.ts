/** The parts of Eleventy, and of its markdown-it, that the site uses; neither has types. */
declare module '@11ty/eleventy' {
  export interface Token {
    readonly type: string;
    tag: string;
    readonly info: string;
    readonly content: string;
    readonly children: readonly Token[] | null;
    hidden: boolean;
    attrGet(name: string): string | null;
    attrSet(name: string, value: string): void;
  }

  export interface MarkdownIt {
    enable(rule: string): void;
    readonly core: { readonly ruler: { push(name: string, rule: (state: MarkdownState) => void): void } };
    readonly renderer: {
      readonly rules: Record<string, (tokens: readonly Token[], index: number) => string>;
    };
  }

  export interface MarkdownState {
    readonly tokens: readonly Token[];
    readonly env: { readonly page: OutputPage };
  }

  export interface OutputPage {
    readonly outputPath: string;
  }

  interface TemplateData {
    readonly permalink: string;
    readonly layout: string;
    readonly templateEngineOverride: 'md' | 'html';
  }

  type Layout = (data: { readonly page: OutputPage; readonly content: string }) => string;

  export interface EleventyConfig {
    setTemplateFormats(formats: readonly string[]): void;
    addTemplate(path: string, text: string, data: TemplateData): void;
    addTemplate(path: string, layout: Layout): void;
    amendLibrary(name: 'md', amend: (library: MarkdownIt) => void): void;
  }

  class Eleventy {
    constructor(
      input: string,
      output: string,
      options: {
        readonly configPath: false;
        readonly quietMode: boolean;
        readonly config: (config: EleventyConfig) => void;
      },
    );
    write(): Promise<unknown>;
  }

  export { Eleventy as default };
}
