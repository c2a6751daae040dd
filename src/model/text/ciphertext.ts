/** Every ciphertext begins with a version and the ID of the key that sealed it. */
export const CIPHERTEXT_HEADER_BYTES = 9;
const VERSION_BYTES = 1;

/** The key ID in a ciphertext, as hexadecimal digits. */
export function ciphertextKeyId(sealed: Uint8Array): string {
  return Buffer.from(sealed.subarray(VERSION_BYTES, CIPHERTEXT_HEADER_BYTES)).toString('hex');
}
