import type { Draw } from '../fuzz/draw.ts';
import type { Mortal } from '../restartable_service.ts';
import type { Scene } from './scene.ts';

/** Something that goes wrong while requests are on their way, and is well again afterwards. */
export interface Fault {
  readonly name: string;
  /** Whether this scene can have it. */
  fits(scene: Scene): boolean;
  strike(scene: Scene, draw: Draw, beside: Beside): Promise<void>;
}

/** Has requests answered by another program as well, until it is taken away again. */
export type Beside = (program: Mortal | undefined) => void;

const MINUTE_MS = 60_000;
/** Further than a token lives, nearer than the memory of answers reaches: what comes behind that is done anew. */
const JUMP_MS_MAX = 2 * 60 * MINUTE_MS;

const between = (draw: Draw, from: number, to: number) => from + draw.below(to - from);

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill -9 of the service',
    fits: () => true,
    async strike({ service }, draw) {
      for (let left = 1 + draw.below(3); left > 0; left -= 1) {
        await service.kill(draw.happens(0.6) ? 'all' : 'one');
        await Bun.sleep(between(draw, 50, 400));
      }
    },
  },
  {
    name: 'full disk',
    fits: ({ disk }) => disk?.fill !== undefined,
    async strike({ disk, service }, draw) {
      disk?.fill?.();
      await Bun.sleep(between(draw, 300, 1_200));
      if (draw.happens(0.3)) await Promise.race([service.kill('all').catch(() => undefined), Bun.sleep(500)]);
      disk?.free();
    },
  },
  {
    name: 'read-only disk',
    fits: ({ disk }) => disk?.makeReadOnly !== undefined,
    async strike({ disk }, draw) {
      disk?.makeReadOnly?.(true);
      await Bun.sleep(between(draw, 300, 1_200));
      disk?.makeReadOnly?.(false);
    },
  },
  {
    name: 'failing fsync',
    fits: ({ disk }) => disk?.failSyncs !== undefined,
    async strike({ disk, service }, draw) {
      for (let left = 1 + draw.below(3); left > 0; left -= 1) {
        disk?.failSyncs?.(true);
        await Bun.sleep(between(draw, 50, 700));
        const dying = draw.happens(0.4) ? service.kill('all') : undefined;
        await Bun.sleep(between(draw, 0, 100));
        disk?.failSyncs?.(false);
        await dying;
        await Bun.sleep(between(draw, 50, 300));
      }
    },
  },
  {
    name: 'clock jumps',
    fits: ({ setClock }) => setClock !== undefined,
    async strike({ setClock }, draw) {
      for (let left = 1 + draw.below(4); left > 0; left -= 1) {
        const far = draw.happens(0.5) ? JUMP_MS_MAX : MINUTE_MS;
        setClock?.(between(draw, -far, far));
        await Bun.sleep(between(draw, 100, 700));
      }
      setClock?.(0);
    },
  },
  {
    name: 'two releases',
    fits: ({ previous }) => previous !== undefined,
    async strike({ previous, service }, draw, beside) {
      beside(previous);
      await Bun.sleep(between(draw, 600, 1_500));
      if (draw.happens(0.5)) await service.kill('all');
      await Bun.sleep(between(draw, 100, 600));
      beside(undefined);
    },
  },
  {
    name: 'kill -9 of the engine',
    fits: ({ engine }) => engine !== undefined,
    async strike({ engine }, draw) {
      await engine?.kill();
      await Bun.sleep(between(draw, 0, 800));
      await engine?.start();
    },
  },
  {
    name: 'cut connections',
    fits: ({ network }) => network !== undefined,
    async strike({ network }, draw) {
      for (let left = 2 + draw.below(8); left > 0; left -= 1) {
        network?.cut();
        await Bun.sleep(between(draw, 10, 250));
      }
    },
  },
  {
    name: 'delayed connections',
    fits: ({ network }) => network !== undefined,
    async strike({ network }, draw) {
      network?.delay(between(draw, 5, 120));
      await Bun.sleep(between(draw, 300, 1_000));
      network?.delay(0);
      if (draw.happens(0.6)) {
        network?.stall();
        await Bun.sleep(between(draw, 100, 1_500));
        if (draw.happens(0.3)) network?.cut();
        network?.resume();
      }
    },
  },
];
