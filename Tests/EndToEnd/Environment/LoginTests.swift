import Glibc
import Synchronization
import TestSupport
import Testing

/// Data behind a login elsewhere, as at NASA's Earthdata: the data's host redirects to the login's host, which asks for
/// a password, and that one back, where a cookie is set that opens the data.
private final class Archive: Sendable {
  private static let alice = "Basic YWxpY2U6YXB3"
  let data, login: ScriptedServer
  private let front: TLSFront
  private let authority: CertificateAuthority
  let body: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 >> 4 ^ $0) }

  init() async throws {
    let address = Addresses()
    let body = body
    data = try ScriptedServer { request, reply in
      if request.target == "/callback?code=c0de" {
        return try reply.respond(
          "302 Found", ["Location: /data/file.bin", "Set-Cookie: session=g00d; Path=/; Secure; HttpOnly"], body: [])
      }
      guard request.value("cookie")?.contains("session=g00d") == true else {
        return try reply.respond(
          "302 Found", ["Location: https://127.0.0.1:\(address.ports[1])/oauth/authorize?client=x"], body: [])
      }
      let start = request.rangeStart ?? 0
      let end = min(request.rangeEnd ?? body.count - 1, body.count - 1)
      let isPart = request.rangeStart != nil
      try reply.respond(
        isPart ? "206 Partial Content" : "200 OK",
        ["ETag: \"1\""] + (isPart ? ["Content-Range: bytes \(start)-\(end)/\(body.count)"] : []),
        body: body[start...end])
    }
    login = try ScriptedServer { request, reply in
      guard request.value("authorization") == Self.alice else {
        return try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"login\""], body: [])
      }
      try reply.respond(
        "302 Found",
        ["Location: https://localhost:\(address.ports[0])/callback?code=c0de", "Set-Cookie: user=al1ce; Secure"],
        body: [])
    }
    authority = try await CertificateAuthority()
    front = try await TLSFront(to: [data, login], authority: authority, announcesEnd: true)
    address.ports = front.ports
  }

  var url: String { "https://localhost:\(front.ports[0])/data/file.bin" }

  /// A spool whose worker has this netrc file, and a job for the data.
  func spool(netrc: String, mode: mode_t = 0o600, job: String = "") throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.write("netrc", netrc)
    guard chmod(spool.path("netrc"), mode) == 0 else { throw TestSupportError("chmod", "netrc", errno: errno) }
    try spool.write("defaults", "netrc: netrc\ncacert: \(authority.authority)\n")
    try spool.drop("a", "url: \(url)\n\(job)")
    return spool
  }
}

/// The ports, which the servers' scripts get to know once there are servers.
private final class Addresses: Sendable {
  private let known = Mutex<[UInt16]>([0, 0])

  var ports: [UInt16] {
    get { known.withLock { $0 } }
    set { known.withLock { $0 = newValue } }
  }
}

@Suite(
  .timeLimit(.minutes(30)),
  .enabled("needs \(Need.tls.name)") { try await Need.tls.isMet() })
struct LoginTests {
  private static let netrc = "machine 127.0.0.1 login alice password apw\n"
  private static let secrets = ["alice", "apw", "g00d", "al1ce", "c0de"]

  /// However many connections and requests: one login for an attempt.
  @Test(arguments: [1, 4]) func thereAndBack(connections: Int) async throws {
    let archive = try await Archive()
    let spool = try archive.spool(netrc: Self.netrc, job: "connections: \(connections)\n")
    let result = try await spool.once("-v", "--chunk-size", "128k", exits: 0)
    #expect(try spool.payload("file.bin") == archive.body)
    #expect(archive.login.requests.count == 1)
    #expect(archive.data.requests.count > (connections > 1 ? 5 : 2))
    #expect(archive.data.requests.allSatisfy { $0.value("authorization") == nil }, "the password is the other host's")
    #expect(archive.login.requests.allSatisfy { $0.value("cookie") == nil })
    let shown = "\(result)" + spool.listing(of: "a")
    #expect(Self.secrets.filter { shown.contains($0) } == [], "\(shown)")
  }

  /// A session is the attempt's own: the next job logs in again.
  @Test func anotherJobHasAnotherSession() async throws {
    let archive = try await Archive()
    let spool = try archive.spool(netrc: Self.netrc)
    try spool.drop("b", "url: \(archive.url)\noutput: b\n")
    let result = try await spoolrun("--once", "--jobs", "1", spool.root)
    #expect(result.exitStatus == 0 && archive.login.requests.count == 2, "\(result)")
  }

  @Test func theWrongPassword() async throws {
    let archive = try await Archive()
    let spool = try archive.spool(netrc: "machine 127.0.0.1 login alice password wr0ng\n", job: "attempts: 1\n")
    let result = try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/a")["code"] == "http-401")
    #expect(!"\(result) \(spool.listing(of: "a"))".contains("wr0ng"))
  }

  /// Whoever else can read it has the password; but it works.
  @Test func aNetrcThatOthersCanRead() async throws {
    let archive = try await Archive()
    let spool = try archive.spool(netrc: Self.netrc, mode: 0o644)
    let result = try await spool.once(exits: 0)
    #expect(
      result.errors.contains("defaults: line 1: netrc: \(spool.root)/netrc can be read by other users: use chmod 600"),
      "\(result)")
  }

  /// Without its file no worker starts, and nothing is taken for refused.
  @Test func aNetrcThatIsNotThere() async throws {
    let spool = try TemporarySpool()
    try spool.write("defaults", "timeout: 5s\nnetrc: yes\n")
    try spool.drop("a", "http://127.0.0.1:9/a\n")
    let home = try TemporaryDirectory()
    try await spoolrun("--once", spool.root, environment: ["HOME": home.path])
      .exits(78, saying: "line 2: netrc: \(home.path)/.netrc")
    #expect(spool.places(of: "a") == ["new/a"])
  }

  /// A browser's session, exported.
  @Test func cookiesOfAFile() async throws {
    let archive = try await Archive()
    let spool = try archive.spool(netrc: "")
    try spool.write(
      "cookies.txt", "# Netscape HTTP Cookie File\n#HttpOnly_localhost\tFALSE\t/\tTRUE\t0\tsession\tg00d\n")
    let defaults = try spool.text("defaults")
    try spool.write("defaults", defaults + "cookies: cookies.txt\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.exitStatus == 0 && archive.login.requests.isEmpty, "\(result)")
  }
}
