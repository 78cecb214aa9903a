import Glibc
import Synchronization
import Testing
import TestSupport

@testable import LyingServer

/// One job over several connections, against servers and mirrors that do or don't play along.
@Suite struct SeveralConnectionsTests {
  /// The job's own number counts; the first request goes alone, then that many are under way at the same time.
  @Test func sideBySide() async throws {
    let all = try Gate()
    let waiting = Mutex(0)
    let server = try ScriptedServer { request, reply in
      if request.nth > 1, !all.isOpen {
        let isLast = waiting.withLock { waiting in
          waiting += 1
          return waiting == 4
        }
        if isLast { all.open() } else { try reply.stall(until: all) }
      }
      try Origin(bytes: LargeFile.bytes).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nconnections: 4\n")
    let result = try await LargeFile.fetch(spool, "--connections", "2")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(server.requests.map(ask).first == "range 0-16383")
    #expect(Set(server.requests.map(\.connection)).count == 4)
    #expect(server.requests.allSatisfy { ($0.rangeEnd ?? .max) - ($0.rangeStart ?? 0) < 4 * 16384 })
  }

  /// A range that ends where numbers do.
  @Test func aRangeWithoutMeasure() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond(
        "206 Partial Content", ["ETag: \"1\"", "Content-Range: bytes 0-18446744073709551615/*"], body: [1, 2, 3])
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "2")
    #expect(result.status == .exited(75) && spool.places(of: "job") == ["partial/job"], "\(result)")
  }

  @Test func oneMeansOne() async throws {
    let server = try ScriptedServer { try Origin(bytes: LargeFile.bytes).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nconnections: 1\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(server.requests.map(ask) == ["plain"])
  }

  struct OnlyOne: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let script: ScriptedServer.Script
    let asks: [String]
  }

  static let serversForOne = [
    OnlyOne(
      testDescription: "knows no ranges",
      script: { _, reply in try reply.respond("200 OK", ["ETag: \(v1)"], body: LargeFile.bytes) },
      asks: ["range 0-16383"]),
    OnlyOne(
      testDescription: "weak ETag", script: { _ = try Origin(bytes: LargeFile.bytes, etag: "W/\(v1)").answer($0, $1) },
      asks: ["range 0-16383", "plain"]),
    OnlyOne(
      testDescription: "no validator", script: { _ = try Origin(bytes: LargeFile.bytes, etag: nil).answer($0, $1) },
      asks: ["range 0-16383", "plain"]),
    OnlyOne(
      testDescription: "all of it as a range",
      script: { _, reply in
        try reply.respond(
          "206 Partial Content", ["ETag: \(v1)", "Content-Range: \(Origin(bytes: LargeFile.bytes).contentRange(0))"],
          body: LargeFile.bytes)
      }, asks: ["range 0-16383"]),
    OnlyOne(
      testDescription: "416 for a first range",
      script: { request, reply in
        if request.rangeStart == nil {
          try Origin(bytes: LargeFile.bytes).answer(request, reply)
        } else {
          try reply.respond("416 Range Not Satisfiable", body: [])
        }
      }, asks: ["range 0-16383", "plain"]),
  ]

  @Test(arguments: serversForOne)
  func onlyOne(_ server: OnlyOne) async throws {
    let running = try ScriptedServer(server.script)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(running.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)\n\(spool.listing(of: "job"))")
    #expect(running.requests.map(ask) == server.asks)
  }

  /// Does not honour If-Range, which shows only when a second piece is asked for: then without, and nothing is fetched
  /// twice.
  @Test func ifRangeIsIgnored() async throws {
    let server = try ScriptedServer { try Origin(bytes: LargeFile.bytes, ifRange: .refused).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(server.requests.filter { $0.value("if-range") != nil }.count <= 4)
    #expect(try spool.lines("done/job").last { $0.key == "response" }?["if-range"] == "ignored")
  }

  /// Some servers fail on the field. Then pieces are asked for without it, as the whole is.
  @Test func ifRangeIsAnError() async throws {
    let server = try ScriptedServer { request, reply in
      guard request.value("if-range") == nil else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin(bytes: LargeFile.bytes).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(try spool.lines("done/job").last { $0.key == "done" }?["attempts"] == "1")
  }

  /// One request never gets an answer: long before its time-out of 60 s, its bytes are asked for on another connection.
  @Test func oneStalls() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth == 3 { try reply.stall() }
      try Origin(bytes: LargeFile.bytes).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    let stalled = server.requests.first { $0.nth == 3 }?.rangeEnd
    #expect(server.requests.filter { $0.rangeEnd == stalled }.count == 2)
  }

  /// Each connection breaks off in the middle of what it was asked for, and goes on there.
  @Test func allAreCut() async throws {
    let server = try ScriptedServer { try Origin(bytes: LargeFile.bytes).answerAndCut($0, $1, after: 9000) }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    let receipt = try spool.lines("done/job").last { $0.key == "done" }
    #expect(receipt?["attempts"] == "1")
  }

  /// Refusals cost connections, not the job, as long as one is served. A server that only leads there gets no less.
  @Test(arguments: ["429 Too Many Requests", "503 Service Unavailable", "403 Forbidden"], [false, true])
  func tooManyForTheServer(status: String, isLed: Bool) async throws {
    let isBusy = Mutex(false)
    let isRefused = try Gate()
    let server = try ScriptedServer { request, reply in
      let isServed = isBusy.withLock { isBusy in
        defer { isBusy = isBusy || request.nth > 1 }
        return !isBusy || isRefused.isOpen
      }
      if isServed {
        // Else it might bring all before another one is refused.
        if request.nth > 1, !isRefused.isOpen { try reply.stall(until: isRefused) }
        try Origin(bytes: LargeFile.bytes).answer(request, reply)
      } else {
        try reply.respond(status, body: [])
        isRefused.open()
      }
    }
    let front = try ScriptedServer { try $1.respond("302 Found", ["Location: \(server.url($0.target))"], body: []) }
    let spool = try TemporarySpool()
    try spool.drop("job", "\((isLed ? front : server).url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--verbose", "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(try spool.lines("done/job").last { $0.key == "done" }?["attempts"] == "1")
    #expect(result.errors.contains("fewer-connections"))
    #expect(spool.names("servers").isEmpty == (isLed || status.hasPrefix("403")), "\(spool.names("servers"))")
  }
}
