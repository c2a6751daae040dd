// server.mjs
// A login page of your own: authrealm checks passwords and ID tokens, this server keeps the session. For Node.js 20 and Bun.
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { connect } from 'authrealm/client';

const { REALM, PASSWORD_PROFILE, OIDC_PROFILE, PORT = '3000', BEHIND_PROXY, ...env } = process.env;
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
const sessionOf = (request) => sessions.get(cookieOf(request, 'session'));

/** The address of the browser. A proxy adds it at the end of the header; what comes before it, the browser may have written. */
const addressOf = ({ headers, socket }) =>
  BEHIND_PROXY ? headers['x-forwarded-for']?.split(',').at(-1).trim() : socket.remoteAddress;

const escapeHtml = (raw) => raw.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const field = (label, name, attributes, value = '') =>
  `<p><label>${label} <input name="${name}" value="${escapeHtml(value)}" ${attributes} required></label></p>`;
const form = (action, button, fields = '') =>
  `<form method="post" action="${action}">${fields}<button>${escapeHtml(button)}</button></form>`;
const heading = (title, note) => `<h1>${title}</h1><p role="alert">${escapeHtml(note)}</p>`;
const provider = env.PROVIDER_NAME ?? 'the provider';
const providerForm = (button) => (OIDC_PROFILE ? form('/provider', `${button} ${provider}`) : '');
function loginForm(note = '', username = '') {
  const fields = field('Username', 'username', 'autocomplete="username"', username);
  const password = field('Password', 'password', 'type="password" autocomplete="current-password"');
  return `${heading('Sign in', note)}${form('/sign-in', 'Sign in', fields + password)}
${providerForm('Sign in with')}<p><a href="/register">Register</a></p>`;
}
function registerForm(note = '', { username, name, email } = {}) {
  const fields = [
    field('Username', 'username', 'autocomplete="username"', username),
    field('Name', 'name', 'autocomplete="name"', name),
    field('E-mail', 'email', 'type="email" autocomplete="email"', email),
    field('Password', 'password', 'type="password" minlength="8" autocomplete="new-password"'),
  ];
  return `${heading('Register', note)}${form('/register', 'Register', fields.join(''))}<p><a href="/">Sign in</a></p>`;
}
const home = ({ by, userId }, note = '') => `${heading('Welcome', note)}
<p>Signed in ${escapeHtml(by)}, user ${userId}.</p>${providerForm('Add')}${form('/sign-out', 'Sign out')}`;
/** The page of a user, or of nobody. */
const front = (request, note) => (sessionOf(request) ? home(sessionOf(request), note) : loginForm(note));

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

/** Signs a user in. `by` is shown to the user. */
function startSession(request, response, user, ...cookies) {
  // A new session for each sign-in: a value that somebody else knows, or has set, is worth nothing.
  sessions.delete(cookieOf(request, 'session'));
  const id = randomBytes(32).toString('base64url');
  sessions.set(id, user);
  setTimeout(() => sessions.delete(id), SESSION_S * 1000).unref();
  redirectHome(response, cookie('session', id, SESSION_S), ...cookies);
}
const readForm = async (request) => Object.fromEntries(new URLSearchParams(await text(request)));
// The device cookie outlives the session: with it the user gets in while somebody else guesses the password.
const deviceCookie = ({ device }) => cookie('device', device, DEVICE_S);

async function signIn(request, response) {
  const { username = '', password = '' } = await readForm(request);
  const from = { endUserAddress: addressOf(request), device: cookieOf(request, 'device') };
  const checked = await directory.checkPassword([REALM, PASSWORD_PROFILE], { username, password }, from);
  if (!checked.verified) return send(response, 400, loginForm('Wrong username or password.', username));
  startSession(request, response, { by: `as ${username}`, userId: checked.userId }, deviceCookie(checked));
}

async function register(request, response) {
  const { username = '', password = '', name = '', email = '' } = await readForm(request);
  const input = { username, password, password_profile_id: PASSWORD_PROFILE, name, email };
  const from = { endUserAddress: addressOf(request) };
  try {
    const created = await directory.signUp(input, from);
    startSession(request, response, { by: `as ${username}`, userId: created.userId }, deviceCookie(created));
  } catch (error) {
    const details = error.errors?.map(({ title, detail = title }) => detail).join(' ');
    const notes = {
      400: details,
      403: 'Registration is closed.',
      422: details?.includes('unique') ? 'This username is taken.' : details,
    };
    if (!notes[error.status]) throw error;
    send(response, error.status, registerForm(notes[error.status], { username, name, email }));
  }
}

// The code flow of OpenID Connect. A cookie names it; state, nonce and verifier are made of that name, so nothing is stored.
const redirect_uri = `${ORIGIN}/callback`;
const key = randomBytes(32);
const derive = (...parts) => createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url');
// The state also binds the user: a flow that began before a sign-in or a sign-out adds the provider to nobody.
const flowOf = (request, id) => ({
  state: derive('state', id, sessionOf(request)?.userId),
  nonce: derive('nonce', id),
  code_verifier: derive('verifier', id),
});

async function askProvider(url, options) {
  const answer = await fetch(url, { ...options, redirect: 'error', signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(`the provider answered ${answer.status}`);
  return answer.json();
}

let document;
function readDocument() {
  document ??= askProvider(env.PROVIDER_DISCOVERY_URL);
  const forget = () => (document = undefined);
  document.then(() => setTimeout(forget, 300_000).unref(), forget);
  return document;
}

async function beginAtProvider(request, response) {
  const { authorization_endpoint: endpoint } = await readDocument();
  const id = randomBytes(32).toString('base64url');
  const { state, nonce, code_verifier } = flowOf(request, id);
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
  const url = new URL(endpoint);
  const query = {
    response_type: 'code',
    scope: 'openid email profile',
    client_id: env.PROVIDER_CLIENT_ID,
    redirect_uri,
    state,
    nonce,
    code_challenge,
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  // A page that continues by itself: browsers apply `form-action` to the redirects of a form, too.
  const link = `<p><a href="${escapeHtml(url.href)}">Continue to ${escapeHtml(provider)}</a></p>`;
  send(response, 200, link, { Refresh: `0; url=${url.href}`, 'Set-Cookie': cookie('flow', id, 600) });
}

async function returnFromProvider(request, response, query) {
  const id = cookieOf(request, 'flow');
  const forgetFlow = cookie('flow', '', 0);
  const code = query.get('code');
  const { state, nonce, code_verifier } = flowOf(request, id);
  const refuse = (note) => send(response, 400, front(request, note), { 'Set-Cookie': forgetFlow });
  if (!id || !code || query.get('state') !== state) return refuse('Not signed in. Try again.');
  const { token_endpoint: endpoint } = await readDocument();
  const credentials = [env.PROVIDER_CLIENT_ID, env.PROVIDER_CLIENT_SECRET].map(encodeURIComponent).join(':');
  const headers = { Authorization: `Basic ${btoa(credentials)}` };
  const body = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri, code_verifier });
  const { id_token: idToken } = await askProvider(endpoint, { method: 'POST', headers, body });
  const userId = sessionOf(request)?.userId;
  const from = { endUserAddress: addressOf(request) };
  const checked = await directory.checkIdToken([REALM, OIDC_PROFILE], { idToken, nonce, userId }, from);
  if (!checked.verified && userId) return refuse('Not added: it is the login of another user.');
  if (!checked.verified) return refuse(`No user found. Sign in with a password, then add ${provider}.`);
  if (userId) return redirectHome(response, forgetFlow);
  startSession(request, response, { by: `through ${provider}`, userId: checked.userId }, forgetFlow);
}

const routes = {
  'GET /': (request, response) => send(response, 200, front(request)),
  'POST /sign-in': signIn,
  'GET /register': (_, response) => send(response, 200, registerForm()),
  'POST /register': register,
  ...(OIDC_PROFILE && { 'POST /provider': beginAtProvider, 'GET /callback': returnFromProvider }),
  'POST /sign-out': (request, response) => {
    sessions.delete(cookieOf(request, 'session'));
    redirectHome(response, cookie('session', '', 0));
  },
};

async function answer(request, response) {
  const { method, headers } = request;
  const [path, query] = request.url.split('?');
  const route = routes[`${method} ${path}`];
  if (!route) return send(response, 404, 'Not found');
  // A form of another site must sign nobody in or out.
  if (method === 'POST' && headers.origin !== ORIGIN)
    return send(response, 403, `Open this page as ${escapeHtml(ORIGIN)}`);
  if (method === 'POST' && !(Number(headers['content-length']) <= FORM_BYTES_MAX))
    return send(response, 413, 'Too large');
  try {
    await route(request, response, new URLSearchParams(query));
  } catch ({ status, message, retryAfterS: wait = 60 }) {
    const note = `Too many attempts. Try again in ${wait} seconds.`;
    if (status === 429) return send(response, 429, front(request, note), { 'Retry-After': wait });
    // The message has no username, password or token.
    console.error(message);
    send(response, 503, front(request, 'Sign-in is not available. Try again later.'));
  }
}

createServer(answer).listen(PORT, 'localhost', () => console.log(`listening on ${ORIGIN}`));
