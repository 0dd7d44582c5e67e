// A certified OpenID provider, oidc-provider, on loopback, which makes assertions for the authorization servers of MCP
// servers. The token exchange itself is no part of that package, and is written here.
//
// node identity_provider.mjs SETTINGS, which is JSON: `modules` (the node_modules that holds it), `port`, `client` (its id
// and secret here), `known` (the client ids at the authorization servers, by their issuer) and `journal` (a file for one
// JSON object a line for each exchange, secrets and all).
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const given = JSON.parse(process.argv[2]);
const module = async (name) => import(pathToFileURL(`${given.modules}/${name}`));
const { Provider, errors } = await module('oidc-provider/lib/index.js');
const { SignJWT } = await module('jose/dist/webapi/index.js');
const issuer = `http://127.0.0.1:${given.port}`;
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const key = { ...privateKey.export({ format: 'jwk' }), kid: 'idp-1', alg: 'RS256', use: 'sig' };
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:ietf:params:oauth:token-type:';

const provider = new Provider(issuer, {
  clients: [{
    client_id: given.client.id,
    client_secret: given.client.secret,
    redirect_uris: ['http://127.0.0.1/callback'],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token', EXCHANGE],
  }],
  jwks: { keys: [key] },
  scopes: ['openid', 'offline_access'],
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  ttl: { AccessToken: 600, Grant: 3600, IdToken: 600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
  discovery: { identity_chaining_requested_token_types_supported: [`${TYPE}id-jag`] },
});

const names = ['audience', 'resource', 'scope', 'subject_token', 'subject_token_type', 'requested_token_type'];
provider.registerGrantType(EXCHANGE, async (ctx) => {
  const { client, params } = ctx.oidc;
  if (params.requested_token_type !== `${TYPE}id-jag`) throw new errors.InvalidRequest('another token is wanted');
  let subject;
  if (params.subject_token_type === `${TYPE}id_token`) {
    const { payload } = await provider.IdToken.validate(params.subject_token, client);
    if (payload.exp <= Date.now() / 1000) throw new errors.InvalidGrant('the ID token has expired');
    subject = payload.sub;
  } else {
    const found = await provider.RefreshToken.find(params.subject_token);
    if (!found?.isValid) throw new errors.InvalidGrant('the refresh token is not known');
    subject = found.accountId;
  }
  const known = given.known[params.audience];
  if (!known) throw new errors.InvalidTarget();
  const claims = { client_id: known, resource: params.resource, scope: params.scope };
  const assertion = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'oauth-id-jag+jwt', kid: key.kid })
    .setIssuer(issuer).setSubject(subject).setAudience(params.audience).setJti(randomUUID())
    .setIssuedAt().setExpirationTime('5m').sign(privateKey);
  ctx.body = { issued_token_type: `${TYPE}id-jag`, access_token: assertion, token_type: 'N_A', expires_in: 300 };
}, names);

provider.use(async (ctx, next) => {
  await next();
  const basic = ctx.get('authorization');
  const told = { path: ctx.path, method: ctx.method, query: { ...ctx.query }, sent: ctx.oidc?.body ?? {}, basic };
  const answer = { status: ctx.status, location: ctx.response.get('location') ?? '', answer: typeof ctx.body === 'object' ? ctx.body : {} };
  appendFileSync(given.journal, `${JSON.stringify({ ...told, ...answer })}\n`);
});

createServer(provider.callback()).listen(given.port, '127.0.0.1');
