import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { CheckReporter } from './inspection.ts';

/** Before a certificate ends by so much, it is a note. */
const ENDS_SOON_MS = 30 * 86_400_000;

/** When the first certificate of a PEM chain expires, in milliseconds since the epoch. */
export const certificateExpiry = (cert: string): number => Date.parse(new X509Certificate(cert).validTo);

/** Checks a certificate (PEM, the first of a chain) and its key. `path` names the certificate; `now` is in milliseconds. */
export function checkCertificate(
  { cert, key, path }: { readonly cert: string; readonly key: string; readonly path: string },
  now: number,
  reporter: Pick<CheckReporter, 'find' | 'note'>,
): void {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
    if (!certificate.checkPrivateKey(createPrivateKey(key)))
      reporter.find({ says: '--tls-key is not the key of the certificate of --tls-cert' });
  } catch (error) {
    reporter.find({ says: `--tls-cert or --tls-key is no PEM: ${(error as Error).message}` });
    return;
  }
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const at = (time: number) => new Date(time).toISOString();
  if (now < from) reporter.find({ says: `the certificate ${path} becomes valid at ${at(from)}` });
  if (now > to) reporter.find({ says: `the certificate ${path} expired at ${at(to)}: renew it` });
  else if (now > to - ENDS_SOON_MS) reporter.note({ says: `the certificate ${path} expires at ${at(to)}` });
}
