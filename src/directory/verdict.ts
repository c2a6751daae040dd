import { type Complaint, Fault } from '../domain/fault.ts';
import type { Guard, Verdict } from './store.ts';

/** Throws what a verdict means to a caller, unless the write landed. */
export function judge(verdict: Verdict): void {
  switch (verdict.kind) {
    case 'landed':
      return;
    case 'absent':
      throw new Fault('not_found');
    case 'stale':
      throw new Fault('precondition_failed');
    case 'taken':
      throw new Fault(
        'conflict',
        verdict.members.map((name) => complaint(name, uniqueRule(verdict.members, name))),
      );
    case 'dangling':
      throw conflict(`data.${verdict.member}`, 'must name a record of the realm');
    case 'refused':
      throw conflict(`data.${saidAs(verdict.guard)}`, ruleOf(verdict.guard));
    case 'remembered':
      throw new Error('nothing was to be remembered');
  }
}

function complaint(member: string, rule: string): Complaint {
  return { field: `data.${member}`, rule };
}

function uniqueRule(members: readonly string[], name: string): string {
  const others = members.filter((other) => other !== name);
  const together = others.length === 0 ? '' : `, together with ${others.join(' and ')}`;
  return `must be unique in the realm${together}`;
}

/** A conflict about one member. */
export function conflict(field: string, rule: string): Fault {
  return new Fault('conflict', [{ field, rule }]);
}

/** The member by which the caller said what is refused. */
function saidAs(guard: Guard): string {
  return guard.kind === 'settled' ? guard.saidAs : guard.member;
}

function ruleOf(guard: Guard): string {
  switch (guard.kind) {
    case 'unless':
      return `must be an e-mail address where ${guard.saying.member} is ${guard.saying.is}`;
    case 'same':
      return `must be the ${guard.of} of the record in ${guard.reference}`;
    case 'settled':
      return 'cannot change while records refer to this one';
  }
}
