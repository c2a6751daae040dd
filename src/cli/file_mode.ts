import { statSync } from 'node:fs';

/** The mode of a file in octal, and whether other users may read it although it is secret, or may write it. */
export function readFileMode(path: string, isSecret: boolean) {
  const { mode, uid } = statSync(path);
  // A file of another user is read through its group, as the settings file of the Debian package.
  const others = uid === process.getuid?.() ? 0o077 : 0o007;
  const tooMuch = isSecret ? 0o066 : 0o022;
  return { octal: (mode & 0o777).toString(8).padStart(4, '0'), isOpen: (mode & others & tooMuch) !== 0 };
}
