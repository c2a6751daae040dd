export function addDemo(..._: unknown[]): void {}
