// A certified authorization server, oidc-provider, on loopback; its own pages for login and consent.
//
// node authorization.mjs SETTINGS, which is JSON: `modules` (the node_modules that holds it), `port`, `resource`, `life`
// (a file with the seconds that the next tokens are valid), `clients` (that are known already), `document` (a file that
// stands for every client metadata document on the web) and `journal` (a file for one JSON object a line for each
// exchange, secrets and all).
import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const given = JSON.parse(process.argv[2]);
const { port, resource, clients } = given;
const seconds = () => Number(readFileSync(given.life));
const { Provider, errors } = await import(pathToFileURL(`${given.modules}/oidc-provider/lib/index.js`));
const scope = 'mcp:read mcp:write';

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  scopes: ['openid', 'offline_access', ...scope.split(' ')],
  clientDefaults: { application_type: 'native' },
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  ttl: { AccessToken: seconds, ClientCredentials: seconds, Grant: 3600, IdToken: 600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  fetch: async () => new Response(readFileSync(given.document), { headers: { 'content-type': 'application/json' } }),
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    devInteractions: { enabled: true },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
    registration: { enabled: true },
    registrationManagement: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, wanted) => {
        if (wanted !== resource) throw new errors.InvalidTarget();
        return { scope, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: seconds() };
      },
    },
  },
});

provider.use(async (ctx, next) => {
  await next();
  const basic = ctx.get('authorization');
  const told = { path: ctx.path, method: ctx.method, query: { ...ctx.query }, sent: ctx.oidc?.body ?? {}, basic, proof: ctx.get('dpop') };
  const answer = { status: ctx.status, location: ctx.response.get('location') ?? '', answer: typeof ctx.body === 'object' ? ctx.body : {} };
  appendFileSync(given.journal, `${JSON.stringify({ ...told, ...answer })}\n`);
});

createServer(provider.callback()).listen(port, '127.0.0.1');
