import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Environment, runCommand } from './processes.ts';

/** Folders and commands for artefacts that run in a root of their own. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folders: string[] = [];

/** A fresh folder that every user can enter; removed by `removeOpenFolders`. */
export function openFolder(uid = 0): string {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bare-'));
  folders.push(folder);
  chmodSync(folder, uid === 0 ? 0o755 : 0o700);
  if (uid !== 0) chownSync(folder, uid, uid);
  return folder;
}

export function removeOpenFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** What reaches registries: the proxy and npm's settings of this machine. */
const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /_proxy$|^npm_config_/i.test(name)),
) as Environment;

/** Runs a command and returns its output. Throws if it fails or is not installed. */
export async function runTool(...command: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await runCommand(command, NETWORK);
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr}`);
  return stdout;
}

export interface BareSystem {
  readonly root: string;
  /** A user of that system, by name or number. */
  readonly user: string | number;
  readonly environment: readonly string[];
  /** A folder to mount at /data; everything else is read-only then. */
  readonly volume?: string;
}

const ENTER = `root=$0 volume=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ -n "$volume" ]; then
  mount -o remount,bind,ro "$root"
  mount --bind "$volume" "$root/data"
fi
exec env -i "$@"`;

/** The command line that runs a command as a user in another root, with this environment and mounts that end with it. */
export function inRoot(
  { root, user, environment, volume = '' }: BareSystem,
  ...command: readonly string[]
): readonly string[] {
  const chroot = ['/usr/sbin/chroot', `--userspec=${user}:${user}`, '--groups=', root];
  const enter = ['unshare', '--mount', 'sh', '-ec', ENTER, root, volume];
  return [...enter, ...environment, ...chroot, ...command];
}

/** Builds an artefact with its release script, around a binary that exists or a new one, and returns its path. */
export async function buildArtefact(name: string, ...binary: readonly string[]): Promise<string> {
  if (process.getuid?.() !== 0) throw new Error('run this test as root: it changes users and roots');
  const script = join(ROOT, 'scripts/release', `${name}.ts`);
  const { stdout, stderr, code } = await runCommand([process.execPath, script, openFolder(), ...binary], {
    ...NETWORK,
    HOME: process.env.HOME ?? '/',
  });
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}
