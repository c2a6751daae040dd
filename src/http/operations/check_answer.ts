import { z } from 'zod';
import type { Uuid } from '../../model/id.ts';
import type { Resource } from '../../model/resource.ts';
import { user } from '../../model/resources.ts';
import { jsonAnswer, NOT_STORED } from '../openapi/responses.ts';
import { idSchema } from '../openapi/schemas.ts';
import { documentReply } from '../server/reply.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';

/** A user that a check found, and the link by which it did. */
interface Verified {
  readonly userId: Uuid;
  readonly infoId: Uuid;
}

/** The answers of a check of this type by links of this resource, with members of its own. */
export function checkAnswer<V extends Verified>(type: string, link: Resource, own: ProjectedMembers<V>) {
  const related: ProjectedMembers<V> = {
    [user.type]: { data: { id: [idSchema, ({ userId }) => userId], type: user.type } },
    [link.type]: { data: { id: [idSchema, ({ infoId }) => infoId], type: link.type } },
  };
  const members: ProjectedMembers<V> = {
    data: {
      type,
      verified: [z.boolean().meta({ description: 'Without the other members if it is false.' }), () => true],
      ...own,
      relationships: [projectionSchema(related).optional(), projector(related)],
    },
  };
  const bodyOf = projector(members);
  return {
    unverified: documentReply({ data: { type, verified: false } }, 'no-store'),
    verified: (found: V) => documentReply(bodyOf(found), 'no-store'),
    success: (description: string, example: V) =>
      jsonAnswer(description, NOT_STORED, projectionSchema(members).meta({ id: type }), bodyOf(example)),
  };
}
