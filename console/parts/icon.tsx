/** Paths for a 24-unit box, stroked in the text colour. */
const PATHS = {
  find: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zm4.7-1.8L20 20',
  realms: 'M4 7l8-4 8 4-8 4-8-4zm0 5l8 4 8-4M4 17l8 4 8-4',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm-7.5 8a7.5 7.5 0 0 1 15 0',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7m2 3a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17',
  profile: 'M4 5h16v14H4zm4 5h8m-8 4h5',
  changes: 'M4 6h10M4 12h16M4 18h7m9-14v4h-4',
  webhook:
    'M8.5 13.5a4 4 0 1 0 3.5 4h6m-9-5l3-5.2m5.5 6.2a4 4 0 1 1-2.6 7M12 7.3a3.5 3.5 0 1 1 5.3-.8m-5.3.8l3 5.4',
  clients: 'M14.5 9.5a4.5 4.5 0 1 1-4.3-4.5 4.5 4.5 0 0 1 4.3 4.5zm-1.3 3L20 19v2h-3l-1-1v-2h-2l-1.8-1.8',
  health: 'M3 12h4l3-8 4 16 3-8h4',
  transfer: 'M8 4v13m0 0l-4-4m4 4l4-4m4 7V7m0 0l-4 4m4-4l4 4',
  try: 'M5 7l5 5-5 5m7 0h7',
  docs: 'M6 3h9l4 4v14H6zm8 0v5h5M9 13h7m-7 4h5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  done: 'M5 13l4 4L19 7',
  edit: 'M4 20l1-4L16 5l3 3L8 19l-4 1zm10-13l3 3',
  remove: 'M5 7h14m-9 0V4h4v3m-7 0l1 13h8l1-13m-6 4v5m4-5v5',
  add: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  warning: 'M12 4L2.5 20h19L12 4zm0 6v5m0 2.5v.5',
  history: 'M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4l3 2',
  signOut: 'M10 4H5v16h5m4-4l4-4-4-4m4 4H9',
  keys: 'M3 7h18v10H3zm3.5 3h.01m3.5 0h.01m3.5 0h.01m3.5 0h.01M8 14h8',
  light:
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0-6v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  order: 'M8 5v14m0 0l-4-4m4 4l4-4M16 19V5m0 0l-4 4m4-4l4 4',
  forward: 'M9 6l6 6-6 6',
} as const;

export type IconName = keyof typeof PATHS;

/** Decorative: hidden from screen readers, so the text is next to it or in a label. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
