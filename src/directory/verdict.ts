import { type Complaint, Fault } from '../domain/fault.ts';
import type { Guard, WriteResult } from './store.ts';

/** Throws what a verdict means to a caller, unless the write landed. */
export function assertWritten(verdict: WriteResult): void {
  switch (verdict.kind) {
    case 'written':
      return;
    case 'not_found':
      throw new Fault('not_found');
    case 'revision_mismatch':
      throw new Fault('precondition_failed');
    case 'unique':
      throw new Fault(
        'conflict',
        verdict.members.map((name) => fieldError(name, uniqueRule(verdict.members, name))),
      );
    case 'foreign_key':
      throw fieldConflict(`data.${verdict.member}`, 'must name a record of the realm');
    case 'guard':
      throw fieldConflict(`data.${fieldOf(verdict.guard)}`, guardRule(verdict.guard));
    case 'already_answered':
      throw new Error('nothing was to be remembered');
  }
}

function fieldError(member: string, rule: string): Complaint {
  return { field: `data.${member}`, rule };
}

function uniqueRule(members: readonly string[], name: string): string {
  const others = members.filter((other) => other !== name);
  const together = others.length === 0 ? '' : `, together with ${others.join(' and ')}`;
  return `must be unique in the realm${together}`;
}

/** A conflict about one member. */
export function fieldConflict(field: string, rule: string): Fault {
  return new Fault('conflict', [{ field, rule }]);
}

/** The member by which the caller said what is refused. */
function fieldOf(guard: Guard): string {
  return guard.kind === 'settled' ? guard.saidAs : guard.member;
}

function guardRule(guard: Guard): string {
  switch (guard.kind) {
    case 'unless':
      return `must be an e-mail address where ${guard.saying.member} is ${guard.saying.is}`;
    case 'same':
      return `must be the ${guard.of} of the record in ${guard.reference}`;
    case 'settled':
      return 'cannot change while records refer to this one';
  }
}
