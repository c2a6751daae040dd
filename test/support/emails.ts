/** Addresses that people have and that many validators refuse. */
export const UNUSUAL_EMAILS: readonly string[] = [
  ...[..."!#$%&'*+-/=?^_`{|}~"].map((character) => `j${character}x@example.com`),
  '~@example.com',
  '.jane@docomo.example',
  'jane.@docomo.example',
  'jane..doe@docomo.example',
  'jänë@exämple.com',
  'δοκιμή@παράδειγμα.ελ',
  '用户@例子.公司',
  'राम@उदाहरण.भारत',
  '🙂@example.com',
  'root@localhost',
  'jane@192.0.2.7',
  'jane_@a_b.example.com',
];
