import Glibc
import TestSupport
import Testing

/// `clean --archive`, killed or failing at each of its calls: each receipt is in `done/` or in the directory of its
/// month, and there after the next run.
@Suite struct ArchiveCrashTests {
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }

  /// By name. The first is archived from the start.
  private static let receipts: [String: [UInt8]] = [
    "earlier": receipt("2026-01-02", "earlier"), "a": receipt("2026-01-30", "a"), "b~2": receipt("2026-01-31", "b"),
    "c": receipt("2026-02-01", "c") + Array("odd: \\n\\x41\t\u{1b}[2J ü\n".utf8) + [0xFF, 0x0A],
  ]

  private static func receipt(_ day: String, _ output: String) -> [UInt8] {
    Array(
      """
      url: https://user:secret@h/\(output)?token=secret
      started: \(day)T03:00:00Z attempt=1 worker=h.1.0 boot=b mirror=1 url=https://h/x
      verified: \(day)T03:00:01Z size=1 crc32=D3D99E8B part=7
      done: \(day)T03:00:01Z attempts=1 output="\(output)" bytes-fetched=1 seconds=1

      """.utf8)
  }

  /// Nothing is written.
  private static let faults = (Fault.kills + Fault.errors + Fault.harmless).filter { $0.counted != .write }

  @Test(.timeLimit(.minutes(60)), arguments: faults)
  func everyReceiptIsInOnePlace(fault: Fault) async throws {
    let calls = fault.counted.count(in: try await play(nil).events)
    try #require(calls > 3)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...calls {
        group.addTask {
          try await Matrix.slots.withSlot {
            let problems = try await play(fault.at(number)).problems
            #expect(problems == [], "\(fault.at(number))")
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// A directory is named durably before receipts move there, and so are these, by their new names first.
  @Test func movesAreDurableInTheEnd() async throws {
    let outcome = try await play(nil)
    #expect(outcome.problems == [] && Self.isDurable(outcome.former) && Self.isDurable(outcome.events))
    let moves = outcome.events.filter { $0.kind == "rename" && $0.phase == .returned }
    #expect(Set(moves.map(\.source)) == ["done/a", "done/b~2", "done/c"])
    // The test sees what is missing.
    for path in ["done/archive/2026-02", "done/archive", "done"] {
      #expect(!Self.isDurable(outcome.events.filter { $0.kind != "fsync" || $0.path != path }))
    }
  }

  private static func isDurable(_ events: [CallEvent]) -> Bool {
    var volatile: Set<String> = []
    for event in events where event.phase == .returned {
      switch event.kind {
      case "mkdir": volatile.insert(parent(event.path))
      // It has the inode of the new name; 0 where it failed, because there was no directory.
      case "rename" where event.note != "0":
        if volatile.contains("done/archive") { return false }
        volatile.formUnion([parent(String(event.target)), "done"])
      case "fsync":
        if event.path == "done", volatile.contains(where: { $0.hasPrefix("done/archive") }) { return false }
        volatile.remove(event.path)
      default: break
      }
    }
    return volatile.isEmpty
  }

  private static func parent(_ path: String) -> String {
    path.split(separator: "/").dropLast().joined(separator: "/")
  }

  // MARK: one case

  private struct Outcome: Sendable {
    var problems: [String] = []
    var events: [CallEvent] = []
    /// Of the run before.
    var former: [CallEvent] = []
  }

  private func play(_ fault: Fault?) async throws -> Outcome {
    let world = try await World(isInMemory: Need.otherFileSystem.isMet(), onOtherFileSystem: false)
    var outcome = Outcome()
    try put("earlier", world)
    #expect(try await rig(world, nil, record: "former").status == .exited(0))
    outcome.former = try events(world, "former")
    for name in Self.receipts.keys where name != "earlier" { try put(name, world) }
    try writeFile(world.spool.path("done/young"), Self.receipt("2026-02-02", "young"))
    try writeFile(world.spool.path("done/note"), Array("no receipt\n".utf8))
    try setModificationTime(world.spool.path("done/note"), secondsFromNow: -3 * 86_400)

    let result = try await rig(world, fault, record: "record")
    outcome.problems += statusProblems(result, fault)
    outcome.problems += try placeProblems(world, isOver: fault == nil)
    outcome.events = try events(world, "record")
    if fault == nil { return outcome }
    let next = try await rig(world, nil, record: "next")
    if next.status != .exited(0) { outcome.problems.append("the next run: \(next)") }
    outcome.problems += try placeProblems(world, isOver: true)
    return outcome
  }

  private func events(_ world: World, _ record: String) throws -> [CallEvent] {
    var offset = 0
    return try CallEvent.record(at: world.outside(record), from: &offset)
  }

  private func put(_ name: String, _ world: World) throws {
    try writeFile(world.spool.path("done/\(name)"), try #require(Self.receipts[name]))
    try setModificationTime(world.spool.path("done/\(name)"), secondsFromNow: -3 * 86_400)
  }

  private func rig(_ world: World, _ fault: Fault?, record: String) async throws -> CommandResult {
    let plan = fault.map { ["fault=\($0)"] } ?? []
    let arguments = [world.spool.root, "record=\(world.outside(record))", "archive=86400"] + plan
    return try await Self.rigs.get().run(arguments, outputPath: world.outside("output"))
  }

  private func statusProblems(_ result: CommandResult, _ fault: Fault?) -> [String] {
    switch result.status {
    case .killed(signal: SIGKILL) where fault?.isKill == true: []
    case .exited(0): []
    // An fsync that was interrupted is none.
    case .exited(74) where fault?.isError == true || fault?.argument == "EINTR": []
    default: ["it ended with \(result.status): \(result.errors)"]
    }
  }

  private func placeProblems(_ world: World, isOver: Bool) throws -> [String] {
    var problems: [String] = []
    for (name, bytes) in Self.receipts {
      let month = String(decoding: bytes, as: UTF8.self).firstMatch(of: #/2026-\d\d/#)?.output ?? ""
      let (done, archived) = (world.spool.path("done/\(name)"), world.spool.path("done/archive/\(month)/\(name)"))
      let places = [done, archived].filter { fileStatus($0) != nil }
      if places.count != 1 { problems.append("\(name) is in \(places.count) places") }
      for place in places where try readFile(place) != bytes { problems.append("\(place) has other bytes") }
      if isOver, places != [archived] { problems.append("\(name) is not archived in the end") }
    }
    for name in ["young", "note"] where fileStatus(world.spool.path("done/\(name)")) == nil {
      problems.append("done/\(name) is gone")
    }
    return problems
  }
}
