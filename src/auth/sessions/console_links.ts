import { createHash } from 'node:crypto';
import { type AuditContext, createAuditEntry } from '../../domain/audit_entry.ts';
import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { text } from '../../domain/text/text.ts';
import { brokenRightsRule, type ClientRights } from '../clients/clients.ts';
import type { AuthStore } from '../port.ts';

/** 128 bits. */
const CODE_BYTES = 16;

/** What the log and every entry call whoever signs in by a link. */
export const LINK_LABEL = text(64);

/** A one-time code as a link carries it: 22 characters of base64url. */
export const LINK_CODE = /^[\w-]{21}[AQgw]$/;

/** What stands in the place of a code: it says nothing about it, and is found by it. */
export function digestLinkCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

/** A link to the console as it was just made: the only moment its code is known. */
export interface CreatedConsoleLink {
  readonly code: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * Makes a one-time code that is worth these rights in the console. Throws Refusal where they do not go together, or name
 * more realms than a token can.
 */
export async function createConsoleLink(
  store: Pick<AuthStore, 'insertConsoleLink'>,
  { label, ...rights }: ClientRights & { readonly label: string },
  auditContext: AuditContext,
): Promise<CreatedConsoleLink> {
  const [issue] = LINK_LABEL.safeParse(label).error?.issues ?? [];
  if (issue) throw new Refusal(`the label of a link ${issue.message}`);
  const { scopes, realms } = rights;
  const rule = brokenRightsRule(rights);
  if (rule !== undefined) throw new Refusal(rule.replaceAll('client', 'link'));
  if (realms !== '*' && realms.size > LIMITS.tokenRealmsMax) {
    throw new Refusal(`a link is for all realms, or for at most ${LIMITS.tokenRealmsMax} of them`);
  }
  const code = Buffer.from(auditContext.randomBytes(CODE_BYTES)).toString('base64url');
  const expiresAt = auditContext.now() + LIMITS.consoleLinkMsMax;
  const detail = {
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    expires_at: new Date(expiresAt).toISOString(),
  };
  const auditEntry = createAuditEntry('console-link.created', { object: label, detail }, auditContext);
  await store.insertConsoleLink(digestLinkCode(code), { label, scopes, realms, expiresAt }, auditEntry);
  return { code, expiresAt };
}
