import { dirname } from 'node:path';

/** Why a file cannot be read, and what to do about it, for the end of a sentence that names the file. */
export function fileErrorText(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'it does not exist: check the path';
    case 'ENOTDIR':
      return 'a part of its path is a file: check the path';
    case 'EISDIR':
      return 'it is a folder: pass the path of a file';
    case 'EACCES':
    case 'EPERM':
      return `user ${userOfProcess()} may not read it: change its owner or its mode`;
    default:
      return message;
  }
}

/** As `fileErrorText`, for a file that cannot be created. */
export function newFileErrorText(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const folder = dirname(path);
  switch (code) {
    case 'EEXIST':
      return 'it exists, and is never overwritten: choose another name';
    case 'ENOENT':
      return `folder ${folder} does not exist: create it, or choose another one`;
    case 'ENOTDIR':
      return `${folder} is not a folder: choose another one`;
    case 'EACCES':
    case 'EPERM':
      return `user ${userOfProcess()} may not create files in ${folder}: change its owner or its mode, or choose another folder`;
    case 'EROFS':
      return `${folder} is mounted read-only: choose another folder`;
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full: free space, or choose another folder';
    default:
      return message;
  }
}

function userOfProcess(): string {
  return String(process.getuid?.() ?? 'of this process');
}
