import { useState } from 'preact/hooks';
import {
  type Client,
  type Grant,
  readClientAlone,
  type TaggedClient,
  updateClient,
} from '../../api/clients.ts';
import { problemOf } from '../../api/problem.ts';
import type { Tagged } from '../../api/records.ts';
import type { Field } from '../../description.ts';
import { Comparison } from '../../form/comparison.tsx';
import { valuesOf } from '../../form/values.ts';
import { announce } from '../../parts/announcer.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import type { ClientDialogProps } from './client_dialogs.tsx';
import { GrantForm } from './grant_form.tsx';

interface Conflict {
  readonly mine: Grant;
  readonly theirs: TaggedClient;
}

/** Changes a client. Where another one was faster, both are shown before anything is saved. */
export function EditClient({ tagged, onClose, onChanged }: ClientDialogProps) {
  const [from, setFrom] = useState(tagged);
  const [conflict, setConflict] = useState<Conflict>();
  const { id } = tagged.client;
  const send = async (mine: Grant, etag: string | undefined) => {
    await updateClient(id, changed(from.client, mine), etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  const meet = async (mine: Grant) => setConflict({ mine, theirs: await readClientAlone(id) });
  const save = async (mine: Grant) => {
    try {
      await send(mine, from.etag);
    } catch (error) {
      if (problemOf(error).kind !== 'stale') throw error;
      await meet(mine);
    }
  };
  return (
    <Dialog title={conflict ? 'Somebody else was faster' : 'Edit client'} onClose={onClose}>
      {conflict ? (
        <Comparison
          fields={FIELDS}
          before={valuesOf(FIELDS, recordOf(from.client))}
          mine={valuesOf(FIELDS, conflict.mine)}
          theirs={{ record: recordOf(conflict.theirs.client), etag: conflict.theirs.etag }}
          overwrite={() => send(conflict.mine, conflict.theirs.etag)}
          onStale={() => meet(conflict.mine)}
          takeTheirs={() => {
            setFrom(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <GrantForm
          key={from.etag}
          begin={grantOf(from.client)}
          submit="Save"
          save={save}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

function grantOf({ name, scopes, realms }: Client): Grant {
  return { name, scopes, realms };
}

/** What differs from how the form began. */
function changed(before: Client, mine: Grant): Partial<Grant> {
  const isOther = (member: keyof Grant) => JSON.stringify(before[member]) !== JSON.stringify(mine[member]);
  return {
    ...(isOther('name') ? { name: mine.name } : {}),
    ...(isOther('scopes') ? { scopes: mine.scopes } : {}),
    ...(isOther('realms') ? { realms: mine.realms } : {}),
  };
}

function recordOf({ meta, ...client }: Client): Tagged['record'] {
  return { ...client, ...meta };
}

const FIELDS: readonly Field[] = (
  [
    ['name', 'Name', 'text'],
    ['scopes', 'Scopes', 'texts'],
    ['realms', 'Realms', 'texts'],
  ] as const
).map(([name, label, kind]) => ({
  ...{ name, label, kind, within: 'data', saidBy: 'anyone', choices: [] },
  ...{ isShown: true, isRequired: true, isNullable: false, isSettled: false },
}));
