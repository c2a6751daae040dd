import { RESOURCES } from '../../api/records.ts';
import { PageHead } from '../../layout/head.tsx';
import type { PageProps } from '../../layout/page.ts';
import { go, href } from '../../layout/router.ts';
import { Empty } from '../../parts/notices.tsx';
import { aboveIn } from './above.tsx';
import { CreateButton } from './create_button.tsx';
import { RecordList } from './record_list.tsx';

/** The users of a realm, however many. */
export function UsersPage({ parameters: { realm = '' } }: PageProps) {
  const { users } = RESOURCES;
  return (
    <>
      <PageHead
        title="Users"
        above={aboveIn(realm)}
        actions={
          <CreateButton
            description={users}
            above={[realm]}
            onDone={({ record }) => go(href('realms', realm, 'users', record.id))}
          />
        }
      />
      <RecordList
        description={users}
        above={[realm]}
        hrefOf={({ id }) => href('realms', realm, 'users', id)}
        more={({ email }) => String(email)}
        empty={
          <Empty icon="user" title="No user in this realm yet">
            <p>
              Make the first one here, or bring many at once: <code>authrealm import</code>.
            </p>
          </Empty>
        }
      />
    </>
  );
}
