import TestSupport
import Testing

@testable import Transfer

/// Whom cookies go to, and for how long.
@Suite(
  .timeLimit(.minutes(30)),
  .enabled("needs \(Need.tls.name)") { try await Need.tls.isMet() })
struct CookieTests {
  private func line(_ host: String, _ name: String, path: String = "/", isSecure: Bool = false) -> String {
    "\(host)\tFALSE\t\(path)\t\(isSecure ? "TRUE" : "FALSE")\t0\t\(name)\tvalue\n"
  }

  @Test func ofAFileGoToTheirHosts() async throws {
    let hosts = try await TwoHosts()
    let file = try hosts.file(
      "# Netscape HTTP Cookie File\n" + line("localhost", "l") + "#HttpOnly_" + line("127.0.0.1", "i")
        + line("other.example", "o") + line("127.0.0.1", "deep", path: "/deep"))
    let driver = try hosts.driver { $0.cookies = .session(file: file) }
    for _ in 1...2 {
      _ = await driver.fetch(hosts.https("localhost", "/go?" + hosts.http("127.0.0.1", "/deep/x")))
    }
    _ = await driver.fetch(hosts.http("127.0.0.1", "/x"))
    _ = await driver.fetch(hosts.http("127.0.0.1", "/x")) { $0.headers = ["Cookie: own=1"] }
    let two = ["localhost l=value", "127.0.0.1 deep=value; i=value"]
    #expect(hosts.told("cookie") == two + two + ["127.0.0.1 i=value", "127.0.0.1 own=1"])
  }

  /// Those that a server sets come back to it, within the group, and to nobody else.
  @Test func ofServersLastAsLongAsTheGroup() async throws {
    let hosts = try await TwoHosts { request in
      request.target.hasPrefix("/go") ? ["Set-Cookie: s=\(request.nth)", "Set-Cookie: f=x; Domain=127.0.0.1"] : []
    }
    let driver = try hosts.driver { $0.cookies = .session(file: nil) }
    let group: @Sendable (inout FetchRequest) -> Void = { $0.group = 7 }
    _ = await driver.fetch(hosts.http("localhost", "/go?/a"), change: group)
    _ = await driver.fetch(hosts.http("localhost", "/b"), change: group)
    _ = await driver.fetch(hosts.http("127.0.0.1", "/c"), change: group)
    _ = await driver.fetch(hosts.http("localhost", "/d"))
    await driver.forget(7)
    _ = await driver.fetch(hosts.http("localhost", "/e"), change: group)
    #expect(
      hosts.told("cookie") == [
        "localhost ", "localhost s=1", "localhost s=1", "127.0.0.1 ", "localhost ", "localhost ",
      ])
  }

  @Test func noneWithoutBeingAsked() async throws {
    let hosts = try await TwoHosts { _ in ["Set-Cookie: s=1"] }
    let driver = try hosts.driver { _ in }
    _ = await driver.fetch(hosts.http("localhost", "/go?/a")) { $0.group = 7 }
    #expect(hosts.told("cookie") == ["localhost ", "localhost "])
  }

  @Test func aJarThatIsFull() throws {
    try Libcurl.load()
    let jar = try CookieJar(file: nil)
    for line in ["SET-COOKIE: a=b\r\n", "Set-Cookies: c\r\n"] {
      for _ in 1...10 { Array((line + String(repeating: "x", count: 1 << 17)).utf8).withUnsafeBytes { jar.note($0) } }
      #expect(!jar.isUsable)
    }
    let other = try CookieJar(file: nil)
    for _ in 1...10 { [UInt8](repeating: 0x78, count: 1 << 18).withUnsafeBytes { other.note($0) } }
    #expect(other.isUsable)
  }

  @Test(arguments: [
    ("", false), ("# Netscape HTTP Cookie File\n\r\n", false), ("h\tTRUE\t/\tFALSE\t0\tn\tv\n", true),
    ("#HttpOnly_h\tTRUE\t/\tFALSE\t0\tn\tv\r\n# end", true), ("h\tFALSE\t/\tFALSE\t0\tn\n", true),
    ("\u{FEFF}# Netscape\nh\ttrue\t/\tfalse\t\tn\tv\n", true),
  ]) func `a file may have no cookies`(text: String, hasAny: Bool) throws {
    #expect(try CookieFile.hasCookies(Array(text.utf8)) == hasAny)
  }

  @Test(arguments: [
    ("\n[{\"domain\": \"h\"}]\n", 2, "7 fields"), ("h TRUE / FALSE 0 n v\n", 1, "7 fields"),
    ("h\t/\tTRUE\tFALSE\t0\tn\tv\n", 1, "TRUE nor FALSE"), ("h\tTRUE\t/\tFALSE\ttomorrow\tn\tv\n", 1, "expiry"),
    ("h\tTRUE\t/\tFALSE\t0\t\tv\n", 1, "no name"),
  ]) func `a line that is no cookie is told`(text: String, line: Int, part: String) throws {
    let problem = #expect(throws: CookieFile.Problem.self) { try CookieFile.hasCookies(Array(text.utf8)) }
    #expect(problem?.line == line && problem?.reason.contains(part) == true)
  }

  /// As exporters write them: libcurl itself would drop these without a word.
  @Test(arguments: ["0", "", "-1", "session", "4102444800.5"]) func whateverTheExpiryOfASession(expiry: String)
    async throws
  {
    let hosts = try await TwoHosts()
    let file = try hosts.file("127.0.0.1\tfalse\t\tfalse\t\(expiry)\tn\tv\r\n")
    let driver = try hosts.driver { $0.cookies = .session(file: file) }
    _ = await driver.fetch(hosts.http("127.0.0.1", "/x"))
    #expect(hosts.told("cookie") == ["127.0.0.1 n=v"])
  }

  /// A server that waits for its cookie sends its client in circles.
  @Test(arguments: [true, false]) func aLoopNamesTheKey(hasCookies: Bool) async throws {
    let hosts = try await TwoHosts { request in request.target.hasPrefix("/go") ? ["Set-Cookie: s=1"] : [] }
    let driver = try hosts.driver { if hasCookies { $0.cookies = .session(file: nil) } }
    let loop = hosts.http("localhost", "/go?/go?/go?/end")
    let outcome = await driver.fetch(loop) { $0.maxRedirects = 1 }
    #expect(outcome.failure?.code == .redirect)
    #expect(outcome.failure?.message.contains("`cookies: yes`") == !hasCookies, "\(outcome.result)")
  }
}

extension Driver {
  func forget(_ group: FetchRequest.ID) { engine.forget(group) }
}
