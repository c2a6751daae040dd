import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { YAML } from 'bun';
import type { HealthCheck } from '../console/description.ts';
import { ROOT } from './release/build.ts';

/** The alert rules of deploy/ as checks of the console: both have the same metrics, limits and texts. */

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly description: string; readonly runbook: string };
}

/** The first is known to be up, because it answered the page. The console cannot evaluate the expression of the second. */
const UNCHECKED = ['AuthrealmDown', 'AuthrealmBackupMissing'];

export function readHealthChecks(): readonly HealthCheck[] {
  const file = readFileSync(join(ROOT, 'deploy/prometheus/alerts.yaml'), 'utf8');
  const { groups } = YAML.parse(file) as { groups: readonly { readonly rules: readonly AlertRule[] }[] };
  return groups.flatMap(({ rules }) => rules.filter(({ alert }) => !UNCHECKED.includes(alert)).map(checkOf));
}

/** Throws for an expression that the console cannot evaluate. */
function checkOf({ alert, expr, annotations }: AlertRule): HealthCheck {
  const [, value = '', comparison, limit] = /^(.+) ([<>]) ([\d.]+)$/.exec(expr) ?? [];
  const [part = '', per] = value.split(' / ');
  const [, over, metric, labels = '', window] =
    /(?:(rate|increase)\()?(authrealm_\w+)(?:\{(.*?)\})?(?:\[(\w+)\])?/.exec(part) ?? [];
  const [, quantile] = /^histogram_quantile\(([\d.]+),/.exec(part) ?? [];
  if (limit === undefined || metric === undefined)
    throw new Error(`alerts.yaml: the console has no check for the expression of ${alert}`);
  return {
    name: nameOf(alert),
    limit: Number(limit),
    isMinimum: comparison === '<',
    metric: metric.replace(/_bucket$/, ''),
    labels: [...labels.matchAll(/(\w+)=~?"([^"]*)"/g)].map(([, label = '', pattern = '']) => [
      label,
      pattern,
    ]),
    ...(per === undefined ? {} : { per: /authrealm_\w+/.exec(per)?.[0] ?? '' }),
    ...(over === undefined ? {} : { over: over as 'rate' | 'increase', seconds: secondsOf(window) }),
    ...(quantile === undefined ? {} : { quantile: Number(quantile) }),
    advice: annotations.description,
    guide: annotations.runbook,
  };
}

/** `AuthrealmServerErrors` is `Server errors`. */
function nameOf(alert: string): string {
  const words = alert
    .replace('Authrealm', '')
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

function secondsOf(window = ''): number {
  const seconds = Number.parseInt(window, 10) * (UNIT_SECONDS[window.slice(-1)] ?? Number.NaN);
  if (Number.isNaN(seconds)) throw new Error(`alerts.yaml: unknown time ${window}`);
  return seconds;
}
