import TestSupport
import Testing

/// Real proxies, named in `defaults` or by the environment: a plain request, a tunnel, and a login.
@Suite struct RealProxyTests {
  private func isFreeOfSecrets(_ text: String) -> Bool { !text.contains("us3r") && !text.contains("pa55word") }

  @Test(.enabled("needs squid") { try await RealProxy.Kind.squid.isThere() }, arguments: ["defaults", "environment"])
  func squid(place: String) async throws { try await servesWhoLogsIn(.squid, place) }

  @Test(
    .enabled("needs tinyproxy") { try await RealProxy.Kind.tinyproxy.isThere() },
    arguments: ["defaults", "environment"])
  func tinyproxy(place: String) async throws { try await servesWhoLogsIn(.tinyproxy, place) }

  @Test(
    .enabled("needs dante, root and a mount namespace") { try await RealProxy.Kind.dante.isThere() },
    arguments: ["defaults", "environment"])
  func dante(place: String) async throws { try await servesWhoLogsIn(.dante, place) }

  private func servesWhoLogsIn(_ kind: RealProxy.Kind, _ place: String) async throws {
    let proxy = try await RealProxy(kind)
    let origin = try simpleServer()
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: origin, authority: authority, announcesEnd: true)
    for scheme in kind.schemes {
      // tinyproxy answers a wrong password with 401, which over http may be the origin's.
      for login in ["", RealProxy.login] + (kind == .tinyproxy ? [] : ["us3r:wr0ng"]) {
        let isServed = login == RealProxy.login
        let text = "\(scheme)://\(login)\(login.isEmpty ? "" : "@")127.0.0.1:\(proxy.port)"
        let inDefaults = place == "defaults"
        let spool = try TemporarySpool()
        try spool.write("defaults", "cacert: \(authority.authority)\n\(inDefaults ? "proxy: \(text)\n" : "")")
        try spool.drop("plain", "url: \(origin.url("/plain"))\nattempts: 1\n")
        try spool.drop("tunnel", "url: \(front.url("/tunnel"))\nattempts: 1\n")
        // The one in `defaults` comes first.
        let other = inDefaults ? "http://127.0.0.1:9" : text
        let asked = origin.requests.count
        let result = try await spoolrun(
          "--once", "-v", spool.root, environment: ["http_proxy": other, "https_proxy": other])
        #expect(isFreeOfSecrets("\(result)"), "\(result)")
        if isServed {
          #expect(spool.names("done") == ["plain", "tunnel"], "\(kind) \(scheme): \(result)")
          #expect(origin.requests.count == asked + 2)
          // Squid writes it when the connection has ended.
          let ports = ["\(origin.port)", "\(front.ports[0])"]
          try await waitUntil("\(kind) has logged both") {
            let log = proxy.log
            return ports.allSatisfy { log.contains($0) }
          }
        } else {
          #expect(result.exitStatus == 75 && origin.requests.count == asked, "\(kind) \(scheme): \(result)")
          for job in ["plain", "tunnel"] { #expect(isFreeOfSecrets(spool.listing(of: job))) }
        }
      }
    }
  }

  /// What `no_proxy` names is reached directly, also past the proxy in `defaults`.
  @Test func noProxyHolds() async throws {
    let dead = try DeadPort()
    let origin = try simpleServer()
    let spool = try TemporarySpool()
    try spool.write("defaults", "proxy: socks5h://127.0.0.1:\(dead.port)\n")
    try spool.drop("a", "url: \(origin.url("/a"))\nattempts: 1\n")
    var result = try await spoolrun("--once", spool.root)
    #expect(result.exitStatus == 75 && origin.requests.isEmpty, "\(result)")
    #expect(try spool.lastFailure("partial/a")["code"] == "proxy")
    try spool.makeDue("a")
    result = try await spoolrun("--once", spool.root, environment: ["no_proxy": "127.0.0.0/8"])
    #expect(result.exitStatus == 0 && origin.requests.count == 1, "\(result)")
  }
}
