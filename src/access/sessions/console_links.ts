import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Refusal } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { type AuditContext, createAuditEntry } from '../../model/log/audit_entry.ts';
import { brokenRightsRule } from '../clients/clients.ts';
import type { AuthStore } from '../store/access.ts';
import { loggedRights, type Rights } from '../tokens/claim_rights.ts';

/** 128 bits. */
const CODE_BYTES = 16;

/** The name of the person who signs in by a link, in the audit log. The console prints it in a shell command. */
export const LINK_LABEL = z
  .string()
  .regex(/^(?=.*\S)[\p{L}\p{M}\p{Nd} ._@+-]{1,64}$/u, 'must be 1 to 64 letters, digits, spaces or . _ @ + -');

/** A one-time code as a link carries it: 22 characters of base64url. */
export const LINK_CODE = /^[\w-]{21}[AQgw]$/;

/** The stored digest of a code: it finds the code's row without revealing the code. */
export function digestLinkCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

/**
 * Creates a one-time code, which is known only now, that grants these rights in the console. Throws Refusal for rights that no
 * token can carry.
 */
export async function createConsoleLink(
  store: Pick<AuthStore, 'insertConsoleLink'>,
  { label, ...rights }: Rights & { readonly label: string },
  auditContext: AuditContext,
  lifetimeMs: number = LIMITS.consoleLinkMsMax,
) {
  const [issue] = LINK_LABEL.safeParse(label).error?.issues ?? [];
  if (issue) throw new Refusal(`the label of a console link ${issue.message}`, { isUsage: true });
  const { scopes, realms } = rights;
  // A console session with `sign-in` must report the end user's address.
  const broken = brokenRightsRule({ ...rights, endUserAddress: 'header' });
  if (broken) throw new Refusal(broken.rule.replaceAll('client', 'link'));
  if (realms !== '*' && realms.size > LIMITS.tokenRealmsMax) {
    throw new Refusal(
      `a console link is limited to at most ${LIMITS.tokenRealmsMax} realms: name fewer realms, or allow all`,
    );
  }
  const code = Buffer.from(auditContext.randomBytes(CODE_BYTES)).toString('base64url');
  const [digest, createdAt] = [digestLinkCode(code), auditContext.now()];
  const link = { digest, label, scopes, realms, createdAt, expiresAt: createdAt + lifetimeMs };
  const detail = { ...loggedRights(rights), expires_at: new Date(link.expiresAt).toISOString() };
  const auditEntry = createAuditEntry('console-link.created', { object: label, detail }, auditContext);
  await store.insertConsoleLink(link, auditEntry);
  return { ...link, code };
}
