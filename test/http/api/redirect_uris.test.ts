import { expect, test } from 'bun:test';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  OFFLINE,
  type RecordBody,
} from '../../support/resource_cases.ts';
import { errorsOf, startService } from '../../support/service.ts';

/** The redirect URIs of a realm: docs/wire.md#realms. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);
const [realms] = KINDS;

const GOOD = [
  ...['https://shop.example', 'https://shop.example:8443/a?b=c', 'http://localhost', 'http://localhost:1/x'],
  ...['http://127.0.0.1:8080/callback', 'https://SHOP.EXAMPLE/Callback'],
];
const BAD = [
  ...['http://shop.example/', 'http://localhost.evil.example/', 'http://127.0.0.1.evil.example/'],
  ...[
    'http://127.0.0.2/',
    'https://shop.example/#top',
    'https://shop.example/#',
    'http://localhost@evil.example/',
  ],
  ...['/callback', 'shop.example', 'javascript:alert(1)', `https://shop.example/${'x'.repeat(2048)}`],
];
test('valid redirect URIs are stored unchanged, invalid ones are 422 with their index', async () => {
  const { path } = await createRecord(service, token, {
    kind: realms,
    home,
    data: { redirect_uris: GOOD },
  });
  const { data } = (await (await service.get(path, token)).json()) as RecordBody;
  expect(data.redirect_uris).toEqual(GOOD);
  for (const uri of BAD) {
    const redirect_uris = [GOOD[0], uri];
    const put = { data: { type: realms.resource.type, redirect_uris } };
    for (const answer of [
      await service.put(path, token, put),
      await service.post(realms.collection(home), token, {
        data: { ...realms.fresh(home), redirect_uris },
      }),
    ]) {
      const [error] = await errorsOf(answer);
      expect([uri, answer.status, error?.source?.pointer]).toEqual([uri, 422, '/data/redirect_uris/1']);
    }
  }
  const reset = { data: { type: realms.resource.type, redirect_uris: [] } };
  expect(((await (await service.put(path, token, reset)).json()) as RecordBody).data.redirect_uris).toEqual(
    [],
  );
});
