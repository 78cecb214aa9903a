import TestSupport
import Testing

@testable import Transfer

/// Whom the logins of a netrc file go to.
@Suite(
  .timeLimit(.minutes(30)),
  .enabled("needs \(Need.tls.name)") { try await Need.tls.isMet() })
struct NetrcTests {
  private static let alice = "Basic YWxpY2U6YXB3"

  /// A hop has the login of its host, and no other, whatever is missing in an entry. libcurl sent Alice's password on
  /// where it followed a redirect to a host whose entry has no password (CVE-2024-11053), or none but an empty
  /// `default` (CVE-2025-0167).
  @Test(
    arguments: [
      ("machine 127.0.0.1 login bob password bpw", ["Basic Ym9iOmJwdw=="]), ("", [""]),
      ("machine 127.0.0.1", ["", "Basic Og=="]), ("machine 127.0.0.1 login bob", ["", "Basic Ym9iOg=="]),
      ("default", ["", "Basic Og=="]), ("machine other.example login bob password bpw", [""]),
    ])
  func eachHopHasItsOwn(entry: String, allowed: [String]) async throws {
    let hosts = try await TwoHosts()
    let netrc = try hosts.file("machine localhost login alice password apw\n\(entry)\n")
    let driver = try hosts.driver { $0.netrc = netrc }
    // Twice: what libcurl remembers of the first must not count.
    for _ in 1...2 {
      let outcome = await driver.fetch(hosts.https("localhost", "/go?" + hosts.https("127.0.0.1", "/end")))
      #expect(outcome.isComplete, "\(outcome.result)")
    }
    _ = await driver.fetch(hosts.https("127.0.0.1", "/alone"))
    let told = hosts.told("authorization")
    #expect(told.count == 5)
    for (index, text) in told.enumerated() {
      let own = [0, 2].contains(index) ? ["localhost \(Self.alice)"] : allowed.map { "127.0.0.1 \($0)" }
      #expect(own.contains(text), "\(told)")
    }
  }

  /// A password goes over http only to the host of the URL itself: whoever is in between could redirect to any host.
  @Test func plainTextOnlyForTheURLItself() async throws {
    let hosts = try await TwoHosts(asksForLogin: true)
    let netrc = try hosts.file("machine localhost login alice password apw\nmachine 127.0.0.1 login bob password bpw\n")
    let driver = try hosts.driver { $0.netrc = netrc }
    _ = await driver.fetch(hosts.http("localhost", "/a"))
    _ = await driver.fetch(hosts.http("localhost", "/go?/b"))
    _ = await driver.fetch(hosts.http("localhost", "/go?" + hosts.http("127.0.0.1", "/c")))
    _ = await driver.fetch(hosts.https("localhost", "/go?" + hosts.http("localhost", "/d")))
    #expect(
      hosts.told("authorization") == [
        "localhost ", "localhost \(Self.alice)", "localhost ", "localhost \(Self.alice)", "localhost ",
        "localhost \(Self.alice)", "localhost ", "localhost \(Self.alice)", "127.0.0.1 ", "localhost \(Self.alice)",
        "localhost ",
      ])
  }

  @Test func whatTheJobSaysComesFirst() async throws {
    let hosts = try await TwoHosts(asksForLogin: true)
    let netrc = try hosts.file("machine localhost login alice password apw\n")
    let driver = try hosts.driver { $0.netrc = netrc }
    _ = await driver.fetch(hosts.http("me:own@localhost", "/a"))
    _ = await driver.fetch(hosts.http("localhost", "/b")) { $0.headers = ["Authorization: Bearer x"] }
    _ = await driver.fetch(hosts.http("localhost", "/c")) { $0.headers = ["Authorization:"] }
    #expect(
      hosts.told("authorization") == [
        "localhost ", "localhost Basic bWU6b3du", "localhost Bearer x", "localhost ",
      ])
  }

  @Test func ftp() async throws {
    let server = try await FTPServer(file: Array("payload".utf8))
    let hosts = try await TwoHosts()
    var options = TransferOptions(protocols: [.ftp])
    options.network.netrc = try hosts.file("machine 127.0.0.1 login alice password apw\n")
    let outcome = await (try Driver(options)).fetch("ftp://127.0.0.1:\(server.port)/d/f")
    #expect(outcome.isComplete && outcome.body == Array("payload".utf8), "\(outcome.result)")
    #expect(try server.commands.prefix(2) == ["USER alice", "PASS apw"])
  }

  /// Without the login, the server's refusal would count as its last word.
  @Test func aFileThatIsGone() async throws {
    let hosts = try await TwoHosts()
    for change: (inout NetworkOptions) -> Void in [
      { $0.netrc = nowhere }, { $0.cookies = .session(file: nowhere) },
    ] {
      let outcome = await (try hosts.driver(change)).fetch(hosts.http("localhost", "/a"))
      #expect(
        outcome.failure
          == TransferFailure(code: .local, message: "cannot read \(nowhere): No such file or directory"))
    }
    #expect(hosts.server.requests.isEmpty)
  }
}
