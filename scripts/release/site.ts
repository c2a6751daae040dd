import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../../package.json';
import { commitSeconds, ROOT, run, runBuild } from './build.ts';

/** Builds the documentation and packs it: `bun scripts/release/site.ts FOLDER`. */

await runBuild(async (folder) => {
  const name = `authrealm-${manifest.version}-docs`;
  const temporary = mkdtempSync(join(tmpdir(), 'authrealm-site-'));
  try {
    await run([process.execPath, join(ROOT, 'site/build.tsx'), join(temporary, name)]);
    const archive = join(temporary, 'docs.tar');
    const sameBytes = ['--sort=name', `--mtime=@${await commitSeconds()}`, '--owner=0', '--group=0'];
    const modes = ['--numeric-owner', '--mode=u=rwX,go=rX', '--format=ustar'];
    await run(['tar', ...sameBytes, ...modes, '-C', temporary, '-cf', archive, name]);
    const artefact = join(folder, `${name}.tar.gz`);
    writeFileSync(artefact, Bun.gzipSync(readFileSync(archive), { level: 9 }));
    return [artefact];
  } finally {
    rmSync(temporary, { recursive: true });
  }
});
