import { PageHead } from '../../layout/page.tsx';
import { useObserved } from '../../observable.ts';
import { may, session } from '../../session/session.ts';
import { ExportCard } from './export_card.tsx';
import { ImportCard } from './import_card.tsx';
import { currentImport } from './import_run.ts';
import { ORDER } from './line_format.ts';

/** Realms out of this service into files, and files into it. */
export function TransferPage() {
  const state = useObserved(session);
  // What is under way stays in sight, whatever right was lost meanwhile.
  const isUnderWay = useObserved(currentImport) !== undefined;
  const mayMake = isUnderWay || ORDER.some(({ scope }) => may(state, `${scope}:write`));
  return (
    <>
      <PageHead title={mayMake ? 'Import and export' : 'Export'} />
      <div class="transfer">
        {may(state, 'realms:read') && <ExportCard />}
        {mayMake && <ImportCard />}
      </div>
    </>
  );
}
