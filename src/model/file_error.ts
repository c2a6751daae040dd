import { dirname } from 'node:path';

/** Why a file cannot be read, and what to do about it, for the end of a sentence that names the file. */
export function fileErrorText(error: unknown): string {
  return textOf(error, {
    ENOENT: 'it does not exist: check the path',
    ENOTDIR: 'a part of its path is a file: check the path',
    EISDIR: 'it is a folder: pass the path of a file',
    EACCES: `user ${userOfProcess()} may not read it: change its owner or its mode`,
  });
}

/** As `fileErrorText`, for a file that cannot be created. */
export function newFileErrorText(path: string, error: unknown): string {
  const folder = dirname(path);
  return textOf(error, {
    EEXIST: 'it exists, and is never overwritten: choose another name',
    ENOENT: `folder ${folder} does not exist: create it, or choose another one`,
    ENOTDIR: `${folder} is not a folder: choose another one`,
    EACCES: `user ${userOfProcess()} may not create files in ${folder}: change its owner or its mode, or choose another folder`,
    EROFS: `${folder} is mounted read-only: choose another folder`,
    ENOSPC: 'the disk is full: free space, or choose another folder',
  });
}

const SAME_CODES: Readonly<Record<string, string>> = { EPERM: 'EACCES', EDQUOT: 'ENOSPC' };

function textOf(error: unknown, texts: Readonly<Record<string, string>>): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return texts[SAME_CODES[code] ?? code] ?? message;
}

const userOfProcess = () => process.getuid?.() ?? 'of this process';
