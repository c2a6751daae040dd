import { type FirstWish, type Wish, webhooks } from '../../api/webhooks.ts';
import { href } from '../../layout/router.ts';
import type { Kind } from '../administered/kind.ts';
import { WebhookForm } from './webhook_form.tsx';

export const WEBHOOK: Kind<Wish, FirstWish> = {
  what: 'webhook',
  title: 'Webhook',
  home: { label: 'Webhooks', href: href('webhooks') },
  collection: webhooks,
  blank: {
    name: '',
    url: '',
    events: '*',
    realms: '*',
    with_data: false,
    events_max: 1,
    skipped_client: null,
  },
  labels: {
    name: 'Name',
    url: 'URL',
    events: 'Events',
    realms: 'Realms',
    with_data: 'Send the record along',
    events_max: 'Events of one message',
    skipped_client: 'Client left out',
  },
  Form: WebhookForm,
  words: {
    of: {
      rotate: 'gets a new secret, which is shown once. Both sign meanwhile.',
      disable:
        'is told nothing for now. What it misses is sent when it is enabled again, as long as the feed keeps it.',
      enable: 'is told again, from where it was.',
      delete: 'goes for good, with its deliveries and dead letters. What it was not told yet it never is.',
    },
    isOn: 'told as things change',
    isOff: 'disabled: it is told later what it misses',
    turnedOn: 'The webhook is told again.',
    before: 'signs as well until',
  },
};
