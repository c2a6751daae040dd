export function addInit(..._: unknown[]): void {}
