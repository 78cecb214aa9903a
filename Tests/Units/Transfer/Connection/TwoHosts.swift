import TestSupport

@testable import Transfer

/// A server that is two hosts, `localhost` and `127.0.0.1`, over http and https. `/go?URL` redirects there.
struct TwoHosts: Sendable {
  private let authority: CertificateAuthority
  private let front: TLSFront
  private let directory: TemporaryDirectory
  let server: ScriptedServer

  /// - Parameters:
  ///   - asksForLogin: who has none is refused.
  ///   - fields: of the answer to a request, beside others.
  init(
    asksForLogin: Bool = false, fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }
  ) async throws {
    authority = try await CertificateAuthority()
    server = try ScriptedServer { request, reply in
      if asksForLogin, request.value("authorization") == nil {
        return try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: [])
      }
      guard request.target.hasPrefix("/go?") else {
        return try reply.respond("200 OK", fields(request), body: Array("payload".utf8))
      }
      let location = "Location: \(request.target.dropFirst("/go?".count))"
      try reply.respond("302 Found", [location] + fields(request), body: [])
    }
    front = try await TLSFront(to: server, authority: authority, announcesEnd: true)
    directory = try TemporaryDirectory()
  }

  func https(_ host: String, _ path: String) -> String { "https://\(host):\(front.ports[0])\(path)" }
  func http(_ host: String, _ path: String) -> String { "http://\(host):\(server.port)\(path)" }

  /// Writes a file for the options to name.
  func file(_ text: String) throws -> String {
    try writeFile("\(directory.path)/file", Array(text.utf8))
    return "\(directory.path)/file"
  }

  func driver(_ change: (inout NetworkOptions) -> Void) throws -> Driver {
    var network = NetworkOptions()
    network.authorities = authority.authority
    change(&network)
    return try Driver(.init(network: network))
  }

  /// What each request so far told about `field`, behind the name of the host.
  func told(_ field: String) -> [String] {
    server.requests.map { request in
      let host = request.value("host")?.split(separator: ":")[0] ?? ""
      return "\(host) \(request.values(field).joined(separator: " + "))"
    }
  }
}
