/** What the small exports of other systems are made of. */

export interface ForeignExport {
  /** The converter. */
  readonly system: string;
  /** The files of users, in the folder. */
  readonly files: readonly string[];
  /** Further arguments of the converter. A value after `FOLDER/` is a file in the folder. */
  readonly args: readonly string[];
  /** Further arguments of the import. */
  readonly importArgs: readonly string[];
  /** What the converter prints. */
  readonly report: string;
  readonly lines: number;
  /** Of users who may sign in. */
  readonly passwords: readonly Login[];
  /** Of users who may not sign in at the source. */
  readonly disabled: readonly Login[];
  /** The subjects at Google. */
  readonly subjects: readonly string[];
}

interface Login {
  readonly username: string;
  readonly password: string;
}

export const GOOGLE = 'https://accounts.google.com';
export const ISSUER = `google=${GOOGLE}`;
export const PASSWORD = 'correct horse battery staple';
export const AT = '2024-05-06T07:08:09.123Z';

export const login = (username: string, password = PASSWORD): Login => ({ username, password });
export const text = (...rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
export const pretty = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
export const bcrypt = () => Bun.password.hashSync(PASSWORD, { algorithm: 'bcrypt', cost: 4 });
export const argon2 = (memoryCost: number, timeCost: number) =>
  Bun.password.hashSync(PASSWORD, { algorithm: 'argon2id', memoryCost, timeCost });

/** The text of each file by its path. */
export type Files = Readonly<Record<string, string>>;
