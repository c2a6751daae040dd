/** A version, then the identifier of the key that sealed it: what stands before every ciphertext. */
export const CIPHERTEXT_HEADER_BYTES = 9;
const VERSION_BYTES = 1;

/** The identifier of the key that a ciphertext names, as hexadecimal digits. */
export function ciphertextKeyId(sealed: Uint8Array): string {
  return Buffer.from(sealed.subarray(VERSION_BYTES, CIPHERTEXT_HEADER_BYTES)).toString('hex');
}
