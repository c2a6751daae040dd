export function addImport(..._: unknown[]): void {}
