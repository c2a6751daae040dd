import type { Draw } from '../fuzz/draw.ts';
import type { TortureEnvironment } from './environment.ts';

/** A fault that is injected while requests are in flight, and removed afterwards. */
export interface Fault {
  readonly name: string;
  /** Whether this environment supports it. */
  fits(environment: TortureEnvironment): boolean;
  inject(environment: TortureEnvironment, draw: Draw): Promise<void>;
}

const MINUTE_MS = 60_000;
/** Longer than the lifetime of a token, shorter than that of idempotency records: after that a retry would run again. */
const JUMP_MS_MAX = 2 * 60 * MINUTE_MS;

const between = (draw: Draw, from: number, to: number) => from + draw.below(to - from);

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill -9 of the service',
    fits: () => true,
    async inject({ service }, draw) {
      for (let left = 1 + draw.below(3); left > 0; left -= 1) {
        await service.kill(draw.happens(0.6) ? 'all' : 'one');
        await Bun.sleep(between(draw, 50, 400));
      }
    },
  },
  {
    name: 'full disk',
    fits: ({ disk }) => disk?.fill !== undefined,
    async inject({ disk, service }, draw) {
      disk?.fill?.();
      await Bun.sleep(between(draw, 300, 1_200));
      if (draw.happens(0.3)) await Promise.race([service.kill('all').catch(() => undefined), Bun.sleep(500)]);
      disk?.free();
    },
  },
  {
    name: 'read-only disk',
    fits: ({ disk }) => disk?.makeReadOnly !== undefined,
    async inject({ disk }, draw) {
      disk?.makeReadOnly?.(true);
      await Bun.sleep(between(draw, 300, 1_200));
      disk?.makeReadOnly?.(false);
    },
  },
  {
    name: 'failing fsync',
    fits: ({ disk }) => disk?.failSyncs !== undefined,
    async inject({ disk, service }, draw) {
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
    async inject({ setClock }, draw) {
      for (let left = 1 + draw.below(4); left > 0; left -= 1) {
        const far = draw.happens(0.5) ? JUMP_MS_MAX : MINUTE_MS;
        setClock?.(between(draw, -far, far));
        await Bun.sleep(between(draw, 100, 700));
      }
      setClock?.(0);
    },
  },
  {
    name: 'kill -9 of the engine',
    fits: ({ engine }) => engine !== undefined,
    async inject({ engine }, draw) {
      await engine?.kill();
      await Bun.sleep(between(draw, 0, 800));
      await engine?.start();
    },
  },
  {
    name: 'cut connections',
    fits: ({ network }) => network !== undefined,
    async inject({ network }, draw) {
      for (let left = 2 + draw.below(8); left > 0; left -= 1) {
        network?.cut();
        await Bun.sleep(between(draw, 10, 250));
      }
    },
  },
  {
    name: 'delayed connections',
    fits: ({ network }) => network !== undefined,
    async inject({ network }, draw) {
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
