import { clients, type Grant } from '../../api/clients.ts';
import { href } from '../../layout/router.ts';
import type { Kind } from '../administered/kind.ts';
import { GrantForm } from './grant_form.tsx';

export const CLIENT: Kind<Grant> = {
  what: 'client',
  title: 'Client',
  home: { label: 'Clients and keys', href: href('clients') },
  collection: clients,
  blank: { name: '', scopes: [], realms: '*' },
  labels: { name: 'Name', scopes: 'Scopes', realms: 'Realms' },
  Form: GrantForm,
  words: {
    of: {
      rotate: 'gets a new secret, which is shown once.',
      disable: 'is refused within a second, and so are its tokens. It can be enabled again.',
      enable: 'is accepted again, and so are its tokens that have not ended.',
      delete: 'goes for good, and its tokens are refused within a second. What it did stays in the log.',
    },
    isOn: 'accepted',
    isOff: 'disabled: it and its tokens are refused',
    turnedOn: 'The client is accepted again.',
    before: 'accepted until',
  },
};
