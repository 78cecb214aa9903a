import Testing
import TestSupport

@testable import LyingServer

@Suite struct ValidatorTests {
  @Test("validators", arguments: validatorBehaviours)
  func validator(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }

  /// What a fresh job asks second, after a first response with these fields was cut, tells what it took for a
  /// validator.
  struct Learned: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let fields: @Sendable () -> [String]
    let secondAsk: String

    init(_ name: String, asks secondAsk: String, _ fields: @escaping @Sendable () -> [String]) {
      testDescription = name
      self.fields = fields
      self.secondAsk = secondAsk
    }
  }

  static let learned = [
    Learned("strong etag", asks: "range 2500 if \(v1)") { ["ETag: \(v1)"] },
    Learned("empty etag", asks: "range 2500 if \"\"") { ["ETag: \"\""] },
    Learned("weak etag", asks: "plain") { ["ETag: W/\(v1)"] },
    Learned("etag without quotes", asks: "plain") { ["ETag: v1"] },
    Learned("etag with backslash, comma and blank", asks: #"range 2500 if "a\b,c=d""#) { [#"ETag: "a\b,c=d""#] },
    Learned("etag with a quoted pair that isn't one", asks: #"range 2500 if "\\x41""#) { [#"ETag: "\\x41""#] },
    Learned("etag of 2000 bytes", asks: "range 2500 if \"\(long)\"") { ["ETag: \"\(long)\""] },
    Learned("two different etags", asks: "plain") { ["ETag: \(v1)", "ETag: \(v2)"] },
    Learned("nothing", asks: "plain") { [] },
    Learned("date long before Date", asks: "range 2500 if \(longAgo)") {
      ["Last-Modified: \(longAgo)", "Date: \(httpDate(secondsFromNow: 0))"]
    },
    // RFC 9110 section 8.8.2.2: not strong unless Date is later.
    Learned("date in the second of Date", asks: "plain") {
      let now = httpDate(secondsFromNow: 0)
      return ["Last-Modified: \(now)", "Date: \(now)"]
    },
    Learned("date after Date", asks: "plain") {
      ["Last-Modified: \(httpDate(secondsFromNow: 7200))", "Date: \(httpDate(secondsFromNow: 0))"]
    },
    Learned("date without Date", asks: "plain") { ["Last-Modified: \(longAgo)"] },
    Learned("no date", asks: "plain") { ["Last-Modified: yesterday", "Date: \(httpDate(secondsFromNow: 0))"] },
    Learned("weak etag and strong date", asks: "plain") {
      ["ETag: W/\(v1)", "Last-Modified: \(longAgo)", "Date: \(httpDate(secondsFromNow: 0))"]
    },
    Learned("strong etag and strong date", asks: "range 2500 if \(v1)") {
      ["ETag: \(v1)", "Last-Modified: \(longAgo)", "Date: \(httpDate(secondsFromNow: 0))"]
    },
  ]

  private static let long = String(repeating: "x", count: 2000)

  @Test("learned from a cut response", arguments: learned)
  func learns(_ learned: Learned) async throws {
    try await slots.withSlot {
      let server = try ScriptedServer { request, reply in
        let limit = request.nth == 1 ? 5000 : .max
        let origin = Origin(etag: nil, fields: learned.fields(), ifRange: .ignored)
        try origin.answerAndCut(request, reply, after: limit)
      }
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(server.url("/data"))\n")
      let result = try await spoolrun("--once", spool.root)
      #expect(result.status == .exited(0), "\(result)")
      #expect(server.requests.map(ask) == ["plain", learned.secondAsk])
      #expect(digest(try spool.payload("data")) == digest(payload))
    }
  }

  /// ETags may have bytes beyond ASCII (RFC 9110 section 8.8.3, obs-text): two that differ must not look alike.
  @Test func validatorsBeyondASCII() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth == 1 {
        try Origin(bytes: previous, etag: "\"\u{E9}\"").answerAndCut(request, reply, after: 5000)
      } else {
        try Origin(etag: "\"\u{EA}\"", ifRange: .ignored).answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(digest(try spool.payload("data")) == digest(payload))
  }
}
