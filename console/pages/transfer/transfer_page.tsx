import { PageHead } from '../../layout/page.tsx';
import { useObservable } from '../../observable.ts';
import { hasScope, session } from '../../session/session.ts';
import { ExportCard } from './export_card.tsx';
import { ImportCard } from './import_card.tsx';
import { currentImport } from './import_run.ts';
import { IMPORT_ORDER } from './line_format.ts';

/** Exports realms into files, and imports files. */
export function TransferPage() {
  const state = useObservable(session);
  // A running import stays visible even without the scope.
  const isImporting = useObservable(currentImport) !== undefined;
  const mayImport = isImporting || IMPORT_ORDER.some(({ scope }) => hasScope(state, `${scope}:write`));
  return (
    <>
      <PageHead title={mayImport ? 'Import and export' : 'Export'} />
      <div class="transfer">
        {hasScope(state, 'realms:read') && <ExportCard />}
        {mayImport && <ImportCard />}
      </div>
    </>
  );
}
