/**
 * The table of the words of records on SQLite, in which triggers write a row for each word. (`or ignore` in a trigger does not hold for a
 * statement with `on conflict`.)
 */
export function wordTable(table: string): readonly string[] {
  const words = (row: string) => `json_each('["' || replace(${row}.words, ' ', '","') || '"]')`;
  const remove = `delete from ${table}_word where slot = old.slot and word in (select value from ${words('old')});`;
  const insert = `insert into ${table}_word select value, new.slot from ${words('new')}
  where value <> '' on conflict do nothing;`;
  return [
    `create table ${table}_word (
  word text not null,
  slot integer not null,
  primary key (word, slot)
) strict, without rowid;`,
    `create trigger ${table}_word_insert after insert on ${table} begin
  ${insert}
end;`,
    `create trigger ${table}_word_delete after delete on ${table} begin
  ${remove}
end;`,
    `create trigger ${table}_word_update after update of words on ${table}
  when new.words is not old.words begin
  ${remove}
  ${insert}
end;`,
  ];
}
