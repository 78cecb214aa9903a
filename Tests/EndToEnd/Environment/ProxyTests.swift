import Glibc
import TestSupport
import Testing

/// A proxy that is not to be had, or does not serve us, is this machine's trouble and no job's.
@Suite struct ProxyTests {
  private let secrets = ["us3r", "pa55word"]

  /// Each way to fail, over http and over https (a tunnel).
  @Test(arguments: ["http", "https"], ["407", "dead", "unknown", "closes"])
  func burnsNoAttempt(scheme: String, trouble: String) async throws {
    // It would close the connection of a plain request as an origin may: only a tunnel tells whose doing that is.
    if trouble == "closes", scheme == "http" { return }
    let server = try ScriptedServer { _, reply in
      if trouble == "closes" { return try reply.finish() }
      try reply.respond("407 Proxy Authentication Required", ["Proxy-Authenticate: Basic realm=\"x\""], body: [])
    }
    let dead = try DeadPort()
    let place =
      switch trouble {
      case "dead": "127.0.0.1:\(dead.port)"
      case "unknown": "proxy.invalid:3128"
      default: "127.0.0.1:\(server.port)"
      }
    let environment = ["\(scheme)_proxy": "http://us3r:pa55word@\(place)", "no_proxy": ""]
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(scheme)://h.invalid/a\nurl: \(scheme)://other.invalid/a\nattempts: 1\n")
    for _ in 1...2 {
      let result = try await spoolrun("--once", spool.root, environment: environment).exits(75)
      #expect(spool.places(of: "a") == ["partial/a"])
      let record = try spool.lastFailure("partial/a")
      #expect(record["code"] == "proxy" && record["class"] == "temporary" && record["burned"] == "no", "\(record)")
      #expect(record["attempt"] == "1" && record["reason"]?.contains(place) == true, "\(record)")
      #expect(record["reason"]?.contains("h.invalid") == false, "\(record)")
      #expect(secrets.filter { "\(record) \(result)".contains($0) } == [], "\(record) \(result)")
      try spool.makeDue("a")
    }
    // A run that stands still for as long as the proxy rests makes one more attempt.
    let keys = try spool.lines("partial/a").map(\.key)
    let (asked, failed) = (keys.count { $0 == "started" }, keys.count { $0 == "failed" })
    #expect(asked >= 2 && asked == failed, "no other mirror is asked: \(keys)")
    #expect(dead.port > 0, "it is kept until here")
  }

  /// What the proxy says of a host is that host's failure: the next mirror is asked.
  @Test func aHostOutOfReachOfTheProxy() async throws {
    let proxy = try ScriptedServer { _, reply in try reply.respond("503 Service Unavailable", body: []) }
    let spool = try TemporarySpool()
    try spool.drop("a", "url: https://h.invalid/a\nurl: https://other.invalid/a\nattempts: 1\n")
    let result = try await spoolrun(
      "--once", spool.root, environment: ["https_proxy": "http://127.0.0.1:\(proxy.port)"])
    #expect(result.exitStatus == 75, "\(result)")
    let record = try spool.lastFailure("partial/a")
    #expect(record["code"] == "connect" && record["burned"] == "no")
    #expect(record["reason"]?.contains("127.0.0.1:\(proxy.port) answered 503") == true)
    // Behind these, those of another attempt, where the run stood still for as long as the hosts rest.
    #expect(proxy.requests.map(\.target).prefix(2) == ["h.invalid:443", "other.invalid:443"])
    #expect([2, 4, 6].contains(proxy.requests.count))
  }

  /// 407 from a server that is no proxy is its own.
  @Test func withoutAProxy() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(server.url("/407"))\noutput: a\n")
    let result = try await spoolrun(
      "--once", spool.root, environment: ["http_proxy": "127.0.0.1:9", "no_proxy": "127.0.0.0/8"])
    #expect(result.exitStatus == 1, "\(result)")
    #expect(try spool.lastFailure("failed/a")["code"] == "http-407")
  }
}
