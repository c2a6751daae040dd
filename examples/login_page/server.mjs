// server.mjs
// A login page of your own: authrealm checks the password, this server keeps the session. For Node.js 20 and Bun.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { connect } from 'authrealm/client';

const { REALM, PASSWORD_PROFILE, PORT = '3000', BEHIND_PROXY, ...env } = process.env;
const ORIGIN = env.ORIGIN ?? `http://localhost:${PORT}`;
const directory = connect({
  url: env.AUTHREALM_URL,
  clientId: env.AUTHREALM_CLIENT_ID,
  clientSecret: env.AUTHREALM_CLIENT_SECRET,
});
const SESSION_S = 8 * 3600;
const DEVICE_S = 180 * 24 * 3600;
const FORM_BYTES_MAX = 16_384;

/** Who is signed in, by the value of the session cookie. In memory: a restart signs everybody out. */
const sessions = new Map();

// No script reads the cookies, and other sites cannot send them with a form. With https, they are sent encrypted only.
const prefix = ORIGIN.startsWith('https:') ? '__Host-' : '';
const cookie = (name, value, seconds) =>
  `${prefix}${name}=${value}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Lax${prefix && '; Secure'}`;
function cookieOf({ headers }, name) {
  const start = `${prefix}${name}=`;
  const found = headers.cookie?.split('; ').find((each) => each.startsWith(start));
  return found?.slice(start.length);
}

/** The address of the browser. A proxy adds it at the end of the header; what comes before it, the browser may have written. */
const addressOf = ({ headers, socket }) =>
  BEHIND_PROXY ? headers['x-forwarded-for']?.split(',').at(-1).trim() : socket.remoteAddress;

const escapeHtml = (raw) => raw.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const loginForm = (note = '', username = '') => `<h1>Sign in</h1><p role="alert">${escapeHtml(note)}</p>
<form method="post" action="/sign-in">
<p><label>Username <input name="username" value="${escapeHtml(username)}" autocomplete="username" required></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>
<button>Sign in</button></form>`;
const home = (session) => `<h1>Welcome</h1>
<p>Signed in as ${escapeHtml(session.username)}, user ${session.userId}.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>`;

function send(response, status, body, headers = {}) {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    'Cache-Control': 'no-store',
    ...headers,
  });
  response.end(`<!doctype html><html lang="en"><head><title>Shop</title>
<meta name="viewport" content="width=device-width"></head><body><main>${body}</main></body></html>`);
}
// Always to the same page: an address from the request could lead to another site.
const redirectHome = (response, ...cookies) =>
  send(response, 303, '', { Location: '/', 'Set-Cookie': cookies });

async function signIn(request, response) {
  const form = new URLSearchParams(await text(request));
  const [username, password] = [form.get('username') ?? '', form.get('password') ?? ''];
  const from = { endUserAddress: addressOf(request), device: cookieOf(request, 'device') };
  let checked;
  try {
    checked = await directory.checkPassword([REALM, PASSWORD_PROFILE], { username, password }, from);
  } catch (error) {
    if (error.status !== 429) throw error;
    const { retryAfterS: wait = 60 } = error;
    const note = `Too many attempts. Try again in ${wait} seconds.`;
    return send(response, 429, loginForm(note, username), { 'Retry-After': wait });
  }
  if (!checked.verified) return send(response, 400, loginForm('Wrong username or password.', username));
  // A new session for each sign-in: a value that somebody else knows, or has set, is worth nothing.
  sessions.delete(cookieOf(request, 'session'));
  const id = randomBytes(32).toString('base64url');
  sessions.set(id, { username, userId: checked.userId });
  setTimeout(() => sessions.delete(id), SESSION_S * 1000).unref();
  // The device cookie outlives the session: with it the user gets in while somebody else guesses the password.
  redirectHome(response, cookie('session', id, SESSION_S), cookie('device', checked.device, DEVICE_S));
}

const routes = {
  'GET /': (request, response) => {
    const session = sessions.get(cookieOf(request, 'session'));
    send(response, 200, session ? home(session) : loginForm());
  },
  'POST /sign-in': signIn,
  'POST /sign-out': (request, response) => {
    sessions.delete(cookieOf(request, 'session'));
    redirectHome(response, cookie('session', '', 0));
  },
};

async function answer(request, response) {
  const { method, headers } = request;
  const route = routes[`${method} ${request.url}`];
  if (!route) return send(response, 404, 'Not found');
  // A form of another site must sign nobody in or out.
  if (method === 'POST' && headers.origin !== ORIGIN)
    return send(response, 403, `Open this page as ${escapeHtml(ORIGIN)}`);
  if (method === 'POST' && !(Number(headers['content-length']) <= FORM_BYTES_MAX))
    return send(response, 413, 'Too large');
  try {
    await route(request, response);
  } catch (error) {
    // The message has no username, password or token.
    console.error(error.message);
    send(response, 503, loginForm('Sign-in is not available. Try again later.'));
  }
}

createServer(answer).listen(PORT, 'localhost', () => console.log(`listening on ${ORIGIN}`));
