/** Hands a file to the browser, which asks its reader where to keep it. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/** Browsers begin to read a file some time after the click. */
const KEPT_MS = 60_000;
