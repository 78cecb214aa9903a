import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite(.timeLimit(.minutes(30))) struct EngineTests {
  @Test(arguments: ["nothing", "head", "body", "trickle of one line"])
  func idleTimeout(after stage: String) async throws {
    let server = try ScriptedServer { _, reply in
      switch stage {
      case "head": try reply.head("200 OK", ["Content-Length: 9"])
      case "body":
        try reply.head("200 OK", ["Content-Length: 9"])
        try reply.send("12345")
      case "trickle of one line":
        while true { try reply.drip(Array("HTTP/1.1 200 OK".utf8), piece: 1, milliseconds: 100) }
      default: break
      }
      try reply.stall()
    }
    var outcome = await (try Driver()).fetch(server.url("/a")) { $0.idleTimeoutSeconds = 1 }
    // The time to connect is limited, too, and the machine may have other work.
    while outcome.failure?.code == .connect {
      outcome = await (try Driver()).fetch(server.url("/a")) { $0.idleTimeoutSeconds = 1 }
    }
    #expect(outcome.failure == TransferFailure(code: .stalled, message: "no data for 1 s from 127.0.0.1"))
    #expect(outcome.result.bytesReceived == (stage == "body" ? 5 : 0))
    #expect(outcome.result.seconds >= 1)
  }

  /// A full sink pauses its own transfer and no other, and the silence is not the server's.
  @Test func aFullSinkIsWaitedFor() async throws {
    let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 9) }
    let server = try ScriptedServer { request, reply in
      if request.target == "/full" { return try reply.respond("200 OK", body: body) }
      try reply.head("200 OK", ["Content-Length: 10"])
      try reply.drip([UInt8](repeating: 1, count: 10), piece: 1, milliseconds: 300)
    }
    let (driver, room) = (try Driver(), try Gate())
    async let full = driver.fetch(
      server.url("/full"), change: { $0.idleTimeoutSeconds = 2 }, isFull: { $0 >= 100_000 && !room.isOpen })
    #expect(await driver.fetch(server.url("/other")).isComplete)
    #expect(await driver.activeCount == 1)
    room.open()
    let outcome = await full
    #expect(outcome.isComplete && outcome.body == body, "\(outcome.result)")
  }

  @Test func manyFetchesAtOnce() async throws {
    let body = [UInt8](repeating: 7, count: 1000)
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", body: body) }
    let driver = try Driver()
    let url = server.url("/a")
    let complete = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<100 { group.addTask { await driver.fetch(url).body == body } }
      return await group.reduce(true) { $0 && $1 }
    }
    #expect(complete)
    #expect(server.requests.count == 100)
    #expect(await driver.activeCount == 0)
  }

  /// By libcurl's own rule, as many connections stay open as the fetches of the moment need, not those of the next one.
  @Test func connectionsOutliveAQuietTime() async throws {
    let width = 8
    let gates = ["/first": try Gate(), "/last": try Gate()]
    let asked = Mutex<[String: Int]>([:])
    let server = try ScriptedServer { request, reply in
      let count = asked.withLock { asked in
        asked[request.target, default: 0] += 1
        return asked[request.target]
      }
      if let gate = gates[request.target] {
        if count == width { gate.open() }
        if !gate.isOpen { try reply.stall(until: gate) }
      }
      try reply.respond("200 OK", body: [1])
    }
    let driver = try Driver()
    func fetchAtOnce(_ target: String) async {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<width { group.addTask { _ = await driver.fetch(server.url(target)) } }
      }
    }
    await fetchAtOnce("/first")
    for _ in 0..<width { #expect(await driver.fetch(server.url("/one")).isComplete) }
    await fetchAtOnce("/last")
    #expect(Set(server.requests.map(\.connection)).count == width)
  }

  @Test func refusalEndsItBeforeTheBody() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK")
      while true { try reply.send([UInt8](repeating: 0, count: 65_536)) }
    }
    let byHead = await (try Driver()).fetch(server.url("/a"), accepting: { _ in false })
    #expect(byHead.isRefused && byHead.body.isEmpty && byHead.accepts == [200])
    let byBody = await (try Driver()).fetch(server.url("/a"), stopAfter: 100_000)
    #expect(byBody.isRefused && byBody.body.count <= 100_000)
    #expect(byBody.result.bytesReceived == UInt64(byBody.body.count))
  }

  @Test func cancelFromASinkEndsTheDelivery() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK")
      while true { try reply.send([UInt8](repeating: 0, count: 65_536)) }
    }
    let outcome = await (try Driver()).fetch(server.url("/a"), cancelAfter: 1)
    #expect(outcome.isCancelled)
    #expect(outcome.body.count <= 16_384)
  }

  @Test func cancelBetweenPolls() async throws {
    let server = try ScriptedServer { _, reply in try reply.stall() }
    let driver = try Driver()
    async let outcome = driver.fetch(server.url("/a"))
    try await waitUntil("the request is in") { server.requests.count == 1 }
    await driver.cancelAll()
    #expect(await outcome.isCancelled)
    #expect(await driver.activeCount == 0)
    // The handle goes on living in good order.
    let next = try ScriptedServer { _, reply in try reply.respond("200 OK", body: [1]) }
    #expect(await driver.fetch(next.url("/a")).isComplete)
  }

  @Test func aReadableDescriptorEndsTheWait() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { ends.forEach { close($0) } }
    #expect(write(ends[1], "x", 1) == 1)
    let engine = try TransferEngine(.init())
    // Would take longer than the suite's limit.
    #expect(engine.wait(milliseconds: 600_000, descriptors: [ends[0]]) == [ends[0]])
    #expect(engine.running.isEmpty)
  }

  @Test func failuresBeforeTheRequest() async throws {
    let dead = try DeadPort()
    let driver = try Driver()
    let refused = await driver.fetch("http://127.0.0.1:\(dead.port)/a?hunter2")
    #expect(refused.failure?.code == .connect)
    #expect(refused.failure?.osErrno == ECONNREFUSED)
    #expect(refused.failure?.message == "cannot connect to 127.0.0.1 port \(dead.port): Connection refused")
    #expect(refused.accepts.isEmpty)

    let unknown = await driver.fetch("http://name.invalid/a?hunter2")
    #expect(unknown.failure == TransferFailure(code: .resolve, message: "cannot resolve name.invalid"))

    let header = await driver.fetch("http://h/") { $0.headers = ["A: b\r\nC: d"] }
    #expect(header.failure?.code == .badURL)
    let validator = await driver.fetch("http://h/") { $0.ifRange = "\"a\"\r\nC: d" }
    #expect(validator.failure?.code == .badURL)
    let disabled = await driver.fetch("ftp://h/a")
    #expect(disabled.failure?.code == .protocolNotEnabled)
  }

  @Test(.enabled("needs \(Need.tls.name)") { try await Need.tls.isMet() })
  func anUnknownAuthorityIsTold() async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", body: [1]) }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: true)
    let outcome = await (try Driver()).fetch(front.url("/a?token=hunter2"))
    #expect(outcome.failure?.code == .tls)
    #expect(outcome.failure?.message.contains("certificate") == true)
    #expect(outcome.failure?.message.contains("hunter2") == false)
  }

  @Test func optionsThatCannotWork() {
    #expect(throws: TransferError.self) { try TransferEngine(.init(protocols: [])) }
  }

  @Test func requestsPrintWithoutSecrets() throws {
    let url = try URLParts("http://u:hunter2@h/")
    let request = FetchRequest(id: 7, url: url, headers: ["X: hunter2"])
    #expect("\(request)" == "fetch 7")
    var dumped = ""
    dump(request, to: &dumped)
    #expect(!dumped.contains("hunter2"))
  }

  /// Each gets its turn: else the one that brings the head of a file would wait until the others have nothing to do.
  @Test func aGroupsRateGoesRound() async throws {
    let server = try ScriptedServer {
      try $1.respond("200 OK", body: [UInt8](repeating: UInt8($0.nth), count: 8_000_000))
    }
    let driver = try Driver()
    await driver.limit(1, to: 500_000)
    let tally = Tally()
    await withTaskGroup(of: Void.self) { group in
      for target in ["/a", "/b", "/c", "/d"] {
        group.addTask {
          _ = await driver.fetch(
            server.url(target), change: { $0.group = 1 }, whileTrue: { tally.note($0, of: target) })
        }
      }
    }
    #expect(tally.leastGain > 50_000, "what the slowest got while the first got \(Tally.turn) bytes")
  }

  private final class Tally: Sendable {
    /// So long that each has had its turn often, though its server's thread may have had to wait for the processor.
    static let turn = 1_000_000
    private let state = Mutex<(counts: [String: Int], base: [String: Int], leastGain: Int?)>(([:], [:], nil))

    /// Counts from when all four have begun.
    func note(_ received: Int, of target: String) -> Bool {
      state.withLock { state in
        state.counts[target] = received
        if state.counts.count == 4, state.base.isEmpty { state.base = state.counts }
        guard let base = state.base[target], received >= base + Self.turn, state.leastGain == nil else {
          return state.leastGain == nil
        }
        state.leastGain = state.counts.map { $1 - (state.base[$0] ?? 0) }.min()
        return false
      }
    }

    var leastGain: Int { state.withLock { $0.leastGain ?? 0 } }
  }
}

extension Driver {
  func cancelAll() {
    for id in 0...100 as ClosedRange<FetchRequest.ID> { engine.cancel(id) }
  }
}
