// A server on version 2 of the official TypeScript SDK.
//
// node typescript.mjs MODULES stdio|http [PORT], where MODULES is the node_modules that holds the SDK. Tools: `plan` asks
// for a city and then for folders, and answers with both; `grow` adds the tool `new`; `count` changes the resource
// count://calls. What is kept of the resource is fresh for an hour.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [modules, transport, port] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${file}.mjs`));
const { McpServer, acceptedContent, createMcpHandler, fromJsonSchema, inputRequired } = await load('server/dist/index');

const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const BY = fromJsonSchema({ type: 'object', properties: { by: { type: 'string' } }, required: ['by'] });
const HOUR = { ttlMs: 3600000, cacheScope: 'private' };
let calls = 0;
let grown = false;
let changed = { tools: () => {}, resource: () => {} };
const text = (said) => ({ content: [{ type: 'text', text: said }] });

function server() {
  const it = new McpServer(
    { name: 'typescript', version: '2.0.0' },
    { capabilities: { tools: { listChanged: true }, resources: { subscribe: true } }, cacheHints: { 'tools/list': HOUR } },
  );
  it.registerTool('plan', { description: 'Plan a journey', inputSchema: BY }, ({ by }, ctx) => {
    const city = acceptedContent(ctx.mcpReq.inputResponses, 'city')?.city ?? ctx.mcpReq.requestState();
    if (!city) {
      return inputRequired({ inputRequests: { city: inputRequired.elicit({ message: 'Where to?', requestedSchema: CITY }) } });
    }
    const roots = ctx.mcpReq.inputResponses?.folders?.roots;
    if (!roots) {
      return inputRequired({ inputRequests: { folders: inputRequired.listRoots() }, requestState: city });
    }
    return text(`to ${city} by ${by}, with ${roots.length} folders`);
  });
  it.registerTool('grow', { description: 'Add a tool' }, () => {
    grown = true;
    changed.tools(it);
    return text('grown');
  });
  if (grown) {
    it.registerTool('new', { description: 'Just added' }, () => text('new'));
  }
  it.registerTool('count', { description: 'Count calls' }, () => {
    calls += 1;
    changed.resource(it);
    return text(`${calls}`);
  });
  it.registerResource('calls', 'count://calls', { cacheHint: HOUR }, (uri) => ({
    contents: [{ uri: uri.href, text: `${calls}` }],
  }));
  return it;
}

if (transport === 'stdio') {
  const { serveStdio } = await load('server/dist/stdio');
  changed = {
    tools: (it) => it.registerTool('new', { description: 'Just added' }, () => text('new')),
    resource: (it) => it.server.sendResourceUpdated({ uri: 'count://calls' }),
  };
  serveStdio(server);
} else {
  const { toNodeHandler } = await load('node/dist/index');
  const handler = createMcpHandler(server);
  changed = {
    tools: () => handler.notify.toolsChanged(),
    resource: () => handler.notify.resourceUpdated('count://calls'),
  };
  createServer(toNodeHandler(handler)).listen(Number(port), '127.0.0.1');
}
