import Glibc
import TestSupport
import Testing

/// `allow-private: no`: a stranger's link leads nowhere but to the Internet.
@Suite struct PrivateAddressTests {
  private let spool: TemporarySpool
  private let server: ScriptedServer

  init() throws {
    spool = try TemporarySpool()
    server = try simpleServer()
    try setDefaults("allow-private: no\n")
  }

  private func setDefaults(_ text: String) throws {
    try spool.write("tmp/defaults", text)
    try spool.move("tmp/defaults", "defaults")
  }

  @Test func isRefused() async throws {
    let urls = [
      "http://127.0.0.1:PORT/a", "http://localhost:PORT/a", "http://2130706433:PORT/a", "http://127.1:PORT/a",
      "http://0.0.0.0:PORT/a", "http://[::1]:PORT/a", "http://[::ffff:127.0.0.1]:PORT/a",
      "http://[::ffff:7f00:1]:PORT/a", "http://169.254.169.254/latest/meta-data/a", "http://[fd00:ec2::254]/a",
      "http://10.1.2.3/a", "https://192.168.1.1/a", "ftp://127.0.0.1:PORT/a", "sftp://127.0.0.1:PORT/a",
    ]
    for (number, url) in urls.enumerated() {
      try spool.drop("\(number)", url.replacing("PORT", with: "\(server.port)") + "\noutput: \(number)\n")
    }
    // Without a home directory there are no known hosts, and so no SFTP.
    let result = try await spoolrun(
      "--once", "--protocols", "http,https,ftp,sftp", spool.root, environment: ["HOME": spool.root]
    ).exits(1)
    for (number, url) in urls.enumerated() {
      let failure = try spool.lastFailure("failed/\(number)")
      #expect(failure["code"] == "private-address" && failure["class"] == "permanent", "\(url): \(result) \(failure)")
    }
    #expect(server.requests.isEmpty && server.connections == 0)
  }

  /// A proxy that the administrator names may be anywhere, and what it leads to is its own; a redirect to where no
  /// proxy is used is refused.
  @Test func aRedirectFromAProxy() async throws {
    let inner = server
    let proxy = try ScriptedServer { request, reply in
      if request.target.hasSuffix("/direct") { return try reply.respond("200 OK", body: [1]) }
      try reply.respond("302 Found", ["Location: \(inner.url("/secret"))"], body: [])
    }
    try spool.drop("a", "http://public.example/direct\n")
    try spool.drop("b", "http://public.example/redirected\n")
    let environment = ["http_proxy": "http://127.0.0.1:\(proxy.port)", "no_proxy": "127.0.0.1"]
    let result = try await spoolrun("--once", spool.root, environment: environment)
    let failure = try spool.lastFailure("failed/b")
    #expect(failure["code"] == "private-address", "\(result) \(failure)")
    #expect(spool.names("done") == ["a"] && proxy.requests.count == 2 && inner.connections == 0)
  }

  /// A connection that is open from before does not count.
  @Test func fromNowOn() async throws {
    try setDefaults("allow-private: yes\n")
    let line = "exec '\(try productPath("spoolrun"))' -v '\(spool.root)' 2>'\(spool.path("tmp/log"))'"
    let worker = try RunningCommand(["/bin/sh", "-c", line])
    defer { worker.send(signal: SIGKILL) }
    try spool.drop("a", server.url("/a") + "\n")
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    try setDefaults("allow-private: no\n")
    try await waitUntil("the new defaults count") {
      try spool.text("tmp/log").contains(" defaults-read")
    }
    try spool.drop("b", server.url("/b") + "\n")
    try await waitUntil("b has failed") { spool.places(of: "b") == ["failed/b"] }
    #expect(try spool.lastFailure("failed/b")["code"] == "private-address")
    #expect(Set(server.requests.map(\.connection)) == [1])
  }
}
