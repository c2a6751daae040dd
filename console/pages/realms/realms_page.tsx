import { RESOURCES } from '../../api/records.ts';
import { PageHead } from '../../layout/head.tsx';
import { go, href } from '../../layout/router.ts';
import { Empty } from '../../parts/notices.tsx';
import { CreateButton } from './create_button.tsx';
import { RecordList } from './record_list.tsx';

/** All realms that this session may see. */
export function RealmsPage() {
  const realms = RESOURCES.realms;
  return (
    <>
      <PageHead
        title="Realms"
        actions={
          <CreateButton
            description={realms}
            above={[]}
            onDone={({ record }) => go(href('realms', record.id))}
          />
        }
      />
      <RecordList
        description={realms}
        above={[]}
        hrefOf={({ id }) => href('realms', id)}
        more={({ id }) => id}
        empty={
          <Empty icon="realms" title="No realm yet">
            <p>A realm holds users and the profiles they sign in through. Make one to begin with.</p>
          </Empty>
        }
      />
    </>
  );
}
