import Foundation
import Glibc
import TestSupport
import Testing

/// Jobs of high and low priority, with a worker.
@Suite struct UrgentJobTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// Holds `/held…` until the gate opens.
  private func server(_ gate: Gate) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      if request.target.hasPrefix("/held") { try reply.stall(until: gate) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
    }
  }

  private func dropUrgently(_ spool: TemporarySpool, _ name: String, _ job: String) throws {
    try spool.write("tmp/\(name)", job)
    try spool.move("tmp/\(name)", "urgent/\(name)")
  }

  /// However it got its priority, and whether or not inotify tells the worker.
  @Test(arguments: ["drop", "move", "key", "command"], [true, false])
  func startsBeforeAllOthers(way: String, isOnce: Bool) async throws {
    var targets: [String] = []
    // One that stood still between its last look and its choice starts another.
    for _ in 1...4 where targets.prefix(2) != ["/held", "/x"] { targets = try await targetsInOrder(way, isOnce) }
    #expect(targets.prefix(2) == ["/held", "/x"])
  }

  private func targetsInOrder(_ way: String, _ isOnce: Bool) async throws -> [String] {
    let gate = try Gate()
    let server = try server(gate)
    let spool = try TemporarySpool()
    try spool.drop("held", "\(server.url("/held"))\n\(patient)")
    let worker = try startSpoolrun((isOnce ? ["--once"] : []) + ["--jobs", "1", spool.root])
    try await waitUntil("the first runs") { spool.names("cur").count == 1 }
    for number in 0..<40 {
      try spool.drop("old-\(number)", "\(server.url("/old-\(number)"))\n")
      try setModificationTime(spool.path("new/old-\(number)"), secondsFromNow: -1000)
    }
    switch way {
    case "drop": try dropUrgently(spool, "x", "\(server.url("/x"))\n")
    case "key": try spool.drop("x", "\(server.url("/x"))\npriority: high\n")
    default:
      try spool.drop("x", "\(server.url("/x"))\n")
      if way == "move" { try spool.move("new/x", "urgent/x") }
      if way == "command" { try await spoolrun("prioritise", "--spool", spool.root, "x").exits(0) }
    }
    gate.open()
    try await waitUntil("all are done") { spool.names("done").count == 42 }
    try await worker.stop()
    return server.requests.map(\.target)
  }

  /// One of low priority gives up its slot, loses no byte and no attempt, and goes on afterwards.
  @Test func aLowOneGivesUpItsSlot() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let quick = try simpleServer()
    try spool.drop("low", "\(server.url("/low"))\npriority: low\n\(patient)")
    let worker = try startSpoolrun(["-v", "--jobs", "1", spool.root])
    try await waitForHalf(of: "low", in: spool)
    try dropUrgently(spool, "x", "\(quick.url("/x"))\n")
    try await waitUntil("it is done") { spool.places(of: "x") == ["done/x"] }
    gate.open()
    try await waitUntil("the other goes on") { spool.places(of: "low") == ["done/low"] }
    let result = try await worker.stop()
    #expect(result.errors.contains(" parked job=low at=\(halfwayBody.count / 2) reason="), "\(result.errors)")
    let lines = try spool.lines("done/low")
    let again = resumePoint(after: halfwayBody.count / 2)
    #expect(!lines.contains { $0.key == "failed" } && lines.last?["attempts"] == "1")
    #expect(lines.last?["bytes-fetched"] == "\(halfwayBody.count + halfwayBody.count / 2 - again)")
    #expect(server.requests.map(\.rangeStart) == [nil, again])
    #expect(try readFile(spool.path("files/low")) == halfwayBody)
  }

  /// With several connections, bytes that are not in order yet would be lost.
  @Test func aLowOneFetchesNothingTwice() async throws {
    try await replay { try await isFetchedOnce(waitingFor: .seconds(4)) }
  }

  /// - Parameter most: below the 5 s for which a worker waits for the chunks under way.
  /// - Returns: false, without a judgement, if the machine stood still for longer, or until all had come.
  private func isFetchedOnce(waitingFor most: Duration) async throws -> Bool {
    // Each chunk takes a second, so that it ends before the worker gives up waiting for it.
    // It takes seconds, so that there is time to park it on a busy machine.
    let body = Array(repeatElement(halfwayBody, count: 6).joined())
    let server = try ScriptedServer { request, reply in
      let (start, end) = (request.rangeStart ?? 0, request.rangeEnd ?? body.count - 1)
      let range = "Content-Range: bytes \(start)-\(end)/\(body.count)"
      try reply.head("206 Partial Content", ["ETag: \"1\"", range, "Content-Length: \(end - start + 1)"])
      try reply.drip(body[start...end], piece: 4000, milliseconds: 20)
    }
    let quick = try simpleServer()
    let spool = try TemporarySpool()
    try spool.drop("low", "\(server.url("/low"))\npriority: low\nconnections: 4\n\(patient)")
    let worker = try startSpoolrun(["-v", "--jobs", "1", "--chunk-size", "50k", spool.root])
    defer { worker.send(signal: SIGKILL) }
    for number in 1...2 {
      let asked = server.requests.count
      try await waitUntil("chunks are under way") {
        server.requests.count >= asked + 3 || spool.names("done").contains("low")
      }
      let began = ContinuousClock.now
      try dropUrgently(spool, "x\(number)", "\(quick.url("/x\(number)"))\n")
      try await waitUntil("it is done") { spool.places(of: "x\(number)") == ["done/x\(number)"] }
      guard ContinuousClock.now - began < most else { return false }
    }
    try await waitUntil("the other goes on") { spool.places(of: "low") == ["done/low"] }
    let parked = try await worker.stop().errors.matches(of: /parked job=low at=(\d+)/).compactMap { Int($0.1) }
    if parked.isEmpty { return false }
    for offset in parked {
      let before = server.requests.prefix { $0.rangeStart != offset }
      #expect(before.allSatisfy { $0.rangeEnd.map { $0 < offset } == true }, "\(parked): \(server.requests)")
    }
    #expect(try readFile(spool.path("files/low")) == body)
    return true
  }

  /// It leaves a slot free for others.
  @Test func aLowOneNeverTakesTheLastSlot() async throws {
    let gate = try Gate()
    let server = try server(gate)
    for number in 0..<4 { try spool.drop("low\(number)", "\(server.url("/held\(number)"))\npriority: low\n\(patient)") }
    let worker = try startSpoolrun(["--jobs", "3", spool.root])
    try await waitUntil("two run") { spool.names("cur").count == 2 }
    try spool.drop("x", "\(server.url("/x"))\n")
    try await waitUntil("another runs beside them") { spool.places(of: "x") == ["done/x"] }
    #expect(spool.names("cur").count == 2)
    gate.open()
    try await waitUntil("all are done") { spool.names("done").count == 5 }
    try await worker.stop()
  }

  /// A spool of version 0.1 has no `urgent/`. `add` and a worker make it.
  @Test func anOldSpoolGetsTheDirectory() async throws {
    let server = try simpleServer()
    for isAdded in [true, false] {
      let spool = try TemporarySpool()
      try #require(rmdir(spool.path("urgent")) == 0)
      if isAdded {
        let added = try await spoolrun("add", "--spool", spool.root, "--priority", "high", server.url("/x"))
        #expect(added.status == .exited(0) && spool.names("urgent") == ["x"], "\(added)")
        #expect(try spool.text("urgent/x").contains("priority: high\n"))
      }
      try await spool.once(exits: 0)
      #expect(fileStatus(spool.path("urgent")) != nil && spool.names("done") == (isAdded ? ["x"] : []))
    }
  }

  @Test func statusShowsThePriority() async throws {
    try spool.drop("a", "https://h/a\n")
    try spool.drop("b", "https://h/b\npriority: low\n")
    try dropUrgently(spool, "z", "https://h/z\n")
    let table = try await spoolrun("status", spool.root).output
    #expect(table.contains(/z +high priority/) && table.contains(/b +low priority/) && !table.contains("normal"))
    let json = try await spoolrun("status", "--json", spool.root).output
    let list = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])["list"]
    let jobs = try #require(list as? [[String: Any]])
    #expect(jobs.map { $0["name"] as? String } == ["z", "a", "b"])
    #expect(jobs.map { $0["priority"] as? String } == ["high", "normal", "low"])
  }

  @Test func theCommandChangesThePriority() async throws {
    try spool.drop("x", "https://h/a\n")
    func prioritise(_ arguments: String...) async throws -> CommandResult {
      try await spoolrun(["prioritize", "--spool", spool.root, "-v"] + arguments)
    }
    #expect(try await prioritise("--low", "x").output == "new/x -> new/x\n")
    #expect(try spool.text("new/x") == "https://h/a\npriority: low\n")
    #expect(try await prioritise("x").output == "new/x -> urgent/x\n")
    #expect(try await prioritise("--high", "x").output == "urgent/x: nothing to prioritise\n")
    #expect(try await prioritise("--normal", "x").output == "urgent/x -> new/x\n")
    #expect(try spool.text("new/x") == "https://h/a\npriority: normal\n")
    try await prioritise().exits(64)
    try await prioritise("--low", "--high", "x").exits(64)
    try await prioritise("y").exits(1)
  }
}
