import TestSupport

/// Serves one file that takes about a second.
struct SlowServer {
  private let server: ScriptedServer

  init() throws {
    server = try ScriptedServer { _, reply in
      let body = [UInt8](repeating: 0x78, count: 60_000)
      try reply.head("200 OK", ["Content-Length: \(body.count)"])
      try reply.drip(body, piece: 4000, milliseconds: 70)
    }
  }

  var url: String { server.url("/slow") }
}
