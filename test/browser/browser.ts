import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import manifest from '../../package.json';

/** The Chromium of an npm package: unpacked once per version, started once per process. */

const HOME = join(tmpdir(), `authrealm-chromium-${manifest.devDependencies['@sparticuz/chromium']}`);

let starting: Promise<Browser> | undefined;

/** After a launch that failed, or a crash, the next test gets a new browser. */
export async function sharedBrowser(): Promise<Browser> {
  const forget = () => {
    starting = undefined;
  };
  if (starting === undefined) {
    starting = start();
    starting.then((browser) => browser.once('disconnected', forget), forget);
  }
  return starting;
}

export async function endBrowser(): Promise<void> {
  const browser = await starting;
  starting = undefined;
  await browser?.close();
}

/**
 * Starts the packaged browser, with its own libraries and fonts in place of those the machine may lack; root has no sandbox
 * to run it in. AUTHREALM_TEST_BROWSER names another one, which is shown in a window.
 */
async function start(): Promise<Browser> {
  const { chromium } = await import('playwright-core');
  const visible = process.env.AUTHREALM_TEST_BROWSER;
  if (visible !== undefined)
    return chromium.launch({ executablePath: visible, headless: false, slowMo: 100 });
  const executablePath = await program();
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-background-networking'],
    env: {
      PATH: process.env.PATH ?? '',
      HOME,
      FONTCONFIG_FILE: join(HOME, 'fonts.conf'),
      LD_LIBRARY_PATH: join(HOME, 'al2023/lib'),
    },
  });
}

/** Unpacks next to the destination, then renames: an interrupted run leaves nothing that looks complete. */
async function program(): Promise<string> {
  if (!existsSync(HOME)) {
    const fresh = mkdtempSync(`${HOME}-`);
    await unpackInto(fresh);
    try {
      renameSync(fresh, HOME);
    } catch {
      // Another process has unpacked it already.
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  return join(HOME, 'chromium');
}

/** The package unpacks into TMPDIR, and its libraries only if it seems to run on AWS Lambda. */
async function unpackInto(folder: string): Promise<void> {
  const before = { TMPDIR: process.env.TMPDIR, AWS_EXECUTION_ENV: process.env.AWS_EXECUTION_ENV };
  Object.assign(process.env, { TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' });
  try {
    const { default: chromium } = await import('@sparticuz/chromium');
    await chromium.executablePath();
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
  mkdirSync(join(folder, 'fonts-cache'));
  writeFileSync(join(folder, 'fonts.conf'), FONTS);
}

const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${HOME}/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${HOME}/fonts-cache</cachedir>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
`;
