/** The properties of a client, webhook target or delivery, in the order in which they are printed. */
export type Properties = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export function printAll(descriptions: readonly Properties[], asJson: true | undefined): void {
  if (asJson) console.log(JSON.stringify(descriptions, null, 2));
  else for (const each of descriptions) printProperties(each, undefined);
}

export function printProperties(description: Properties, asJson: true | undefined): void {
  if (asJson) {
    console.log(JSON.stringify(description, null, 2));
    return;
  }
  for (const [name, value] of Object.entries(description))
    console.log(`${name.padEnd(14)} ${value ?? 'none'}`);
  console.log('');
}
