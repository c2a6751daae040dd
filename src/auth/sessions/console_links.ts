import { createHash } from 'node:crypto';
import { actOf, type Occasion } from '../../domain/act.ts';
import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { text } from '../../domain/text/text.ts';
import { type Grant, ruleAgainst } from '../clients/clients.ts';
import type { AccessStore } from '../port.ts';

/** 128 bits. */
const CODE_BYTES = 16;

/** What the log and every entry call whoever signs in by a link. */
export const LINK_LABEL = text(64);

/** A one-time code as a link carries it: 22 characters of base64url. */
export const LINK_CODE = /^[\w-]{21}[AQgw]$/;

/** What stands in the place of a code: it says nothing about it, and is found by it. */
export function digestCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

/** A link to the console as it was just made: the only moment its code is known. */
export interface MadeLink {
  readonly code: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * Makes a one-time code that is worth these rights in the console. Throws Refusal where they do not go together, or name
 * more realms than a token can.
 */
export async function makeLink(
  store: Pick<AccessStore, 'keepConsoleLink'>,
  { label, ...grant }: Grant & { readonly label: string },
  occasion: Occasion,
): Promise<MadeLink> {
  const [issue] = LINK_LABEL.safeParse(label).error?.issues ?? [];
  if (issue) throw new Refusal(`the label of a link ${issue.message}`);
  const { scopes, realms } = grant;
  const rule = ruleAgainst(grant);
  if (rule !== undefined) throw new Refusal(rule.replaceAll('client', 'link'));
  if (realms !== '*' && realms.size > LIMITS.tokenRealmsMax) {
    throw new Refusal(`a link is for all realms, or for at most ${LIMITS.tokenRealmsMax} of them`);
  }
  const code = Buffer.from(occasion.randomBytes(CODE_BYTES)).toString('base64url');
  const expiresAt = occasion.now() + LIMITS.consoleLinkMsMax;
  const detail = {
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    expires_at: new Date(expiresAt).toISOString(),
  };
  const act = actOf('console-link.created', { object: label, detail }, occasion);
  await store.keepConsoleLink(digestCode(code), { label, scopes, realms, expiresAt }, act);
  return { code, expiresAt };
}
