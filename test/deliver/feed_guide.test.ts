import { expect, test } from 'bun:test';
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { findPort } from '../support/daemons.ts';
import { runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** Runs the verification code of docs/feed.md. */

const page = readFileSync(new URL('../../docs/feed.md', import.meta.url), 'utf8');
const code = /```js\n(.*?)```/s.exec(page)?.[1] ?? '';
const path = join(freshFolder(), 'verify.mjs');
writeFileSync(path, code);
const { isGenuine } = (await import(path)) as {
  isGenuine(secret: string, headers: Record<string, string>, body: Uint8Array): boolean;
};

const key = randomBytes(32);
const secret = `whsec_${key.toString('base64')}`;
const body = Buffer.from('{"ü":1}');

/** A signature as the service makes it. */
function signature(by: Uint8Array, timestamp: number): string {
  const signer = new Webhook(`whsec_${Buffer.from(by).toString('base64')}`);
  return signer.sign('msg_1', new Date(timestamp * 1_000), body.toString());
}

function headersAt(timestamp: number, keys: readonly Uint8Array[] = [key]) {
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': keys.map((each) => signature(each, timestamp)).join(' '),
  };
}

const now = () => Math.floor(Date.now() / 1000);

test('the verification code of the guide accepts a signature, also next to another one', () => {
  expect(isGenuine(secret, headersAt(now()), body)).toBe(true);
  expect(isGenuine(secret, headersAt(now(), [randomBytes(32), key]), body)).toBe(true);
});

test('the verification code of the guide rejects altered, expired and wrongly signed messages', () => {
  const good = headersAt(now());
  const other = createHmac('sha256', randomBytes(32)).update('x').digest('base64');
  const wrong: readonly [Record<string, string>, Uint8Array][] = [
    [headersAt(now() - 301), body],
    // Some seconds more, because the next second may begin before it is verified.
    [headersAt(now() + 305), body],
    [good, Buffer.from('{"ü":2}')],
    [{ ...good, 'webhook-id': 'msg_2' }, body],
    [{ ...good, 'webhook-timestamp': String(Number(good['webhook-timestamp']) - 1) }, body],
    [{ ...good, 'webhook-signature': `v1,${other}` }, body],
    [{ ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v1a,') }, body],
    [{ ...good, 'webhook-signature': '' }, body],
    [headersAt(now(), [randomBytes(32)]), body],
  ];
  for (const [headers, bytes] of wrong) expect(isGenuine(secret, headers, bytes)).toBe(false);
});

test('the receiver of the guide accepts the message that the guide signs, and rejects another one', async () => {
  const folder = freshFolder();
  const blocks = [...page.matchAll(/```(?:js|sh)\n(.*?)```/gs)].map(([, text = '']) => text);
  for (const text of blocks) {
    const [, name] = /^\/\/ (\S+)\n/.exec(text) ?? [];
    if (name !== undefined)
      writeFileSync(join(folder, name), text.replace('listen(3000', `listen(${portOfReceiver}`));
  }
  const script = blocks.find((text) => text.includes('receiver.mjs >')) ?? '';
  const commands = `cd ${folder}\n${script.replace(':3000', `:${portOfReceiver}`)}`;
  const { code, stdout } = await runCommand(['sh', '-euc', commands], { HOME: folder });
  expect([code, stdout.split('\n')]).toEqual([
    0,
    ['204', '400', "{ type: 'user-authentication-info.created' }", 'rejected', ''],
  ]);
}, 300_000);

const portOfReceiver = findPort();
