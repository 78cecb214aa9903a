// Node's servers: `node origin.js ROOT PORT [KEY CERTIFICATE]`. As origin.py, and files by createReadStream under
// /plain, /weak, /date, /none, /noranges (what they are is said in servers.py), /moved and /forced.
'use strict'
const fs = require('fs')
const path = require('path')
const zlib = require('zlib')
const [root, port, key, certificate] = process.argv.slice(2)
const seen = new Map()

function rangeOf(request, tag, modified, size) {
  const asked = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range || '')
  const condition = request.headers['if-range']
  if (!asked || Number(asked[1]) >= size || (condition && condition !== tag && condition !== modified)) return null
  return [Number(asked[1]), asked[2] ? Math.min(Number(asked[2]), size - 1) : size - 1]
}

function serveFile(request, response, mode, name) {
  const stat = fs.statSync(path.join(root, name))
  const strong = `"${stat.size.toString(16)}-${Math.floor(stat.mtimeMs).toString(16)}"`
  const tag = { plain: strong, noranges: strong, weak: 'W/' + strong }[mode]
  const modified = mode === 'none' ? undefined : stat.mtime.toUTCString()
  if (tag) response.setHeader('ETag', tag)
  if (modified) response.setHeader('Last-Modified', modified)
  const range = mode === 'noranges' ? null : rangeOf(request, tag, modified, stat.size)
  const [first, last] = range || [0, stat.size - 1]
  if (range) response.setHeader('Content-Range', `bytes ${first}-${last}/${stat.size}`)
  response.writeHead(range ? 206 : 200, { 'Content-Length': last - first + 1 })
  if (stat.size === 0 || request.method === 'HEAD') return response.end()
  fs.createReadStream(path.join(root, name), { start: first, end: last }).pipe(response)
}

async function serveDying(request, response, name, query) {
  const content = fs.readFileSync(path.join(root, name))
  await new Promise(resolve => setTimeout(resolve, 1000 * Number(query.get('slow') || 0)))
  const id = query.get('key')
  const tag = query.has('tag') ? `"${id}"` : undefined
  const range = tag && rangeOf(request, tag, tag, content.length)
  const body = range ? content.subarray(range[0], range[1] + 1) : content
  const kind = query.get('kind') || 'chunked'
  seen.set(id, (seen.get(id) || 0) + 1)
  if (tag) response.setHeader('ETag', tag)
  if (range) response.setHeader('Content-Range', `bytes ${range[0]}-${range[1]}/${content.length}`)
  if (kind === 'length') response.setHeader('Content-Length', body.length)
  response.writeHead(range ? 206 : 200)
  if (seen.get(id) > Number(query.get('deaths') || 0)) return response.end(body)
  if (kind === 'head') response.flushHeaders()
  else response.write(body.subarray(0, Number(query.get('at'))))
  setTimeout(() => {
    if (kind !== 'reset') response.destroy()
    // Node 20 ends with a failed assertion on a TLS socket.
    else if (key) request.socket.destroy()
    else request.socket.resetAndDestroy()
  }, 100)
}

function serve(request, response) {
  const url = new URL(request.url, 'http://localhost')
  const [mode, name] = url.pathname.slice(1).split('/')
  try {
    if (mode === 'app') return serveDying(request, response, name, url.searchParams)
    if (mode === 'moved') return response.writeHead(302, { Location: `/plain/${name}` }).end()
    if (mode === 'forced') {
      response.setHeader('Content-Encoding', 'gzip')
      return response.end(zlib.gzipSync(fs.readFileSync(path.join(root, name))))
    }
    serveFile(request, response, mode, name)
  } catch (error) {
    response.writeHead(404).end(String(error))
  }
}

const tls = key && { key: fs.readFileSync(key), cert: fs.readFileSync(certificate) }
const server = tls ? require('https').createServer(tls, serve) : require('http').createServer(serve)
server.listen(Number(port), '127.0.0.1')
