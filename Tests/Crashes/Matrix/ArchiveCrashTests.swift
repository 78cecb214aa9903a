import Glibc
import TestSupport
import Testing

/// `clean --archive`, killed or failing at each of its calls: each receipt is in `done/` or in an archive, and after
/// the next run in one archive, once.
@Suite struct ArchiveCrashTests {
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }

  /// By name. The first is in an archive from the start.
  private static let receipts: [String: [UInt8]] = [
    "earlier": receipt("2026-01-02", "earlier"), "a": receipt("2026-01-30", "a"), "b~2": receipt("2026-01-31", "b"),
    "c d": receipt("2026-02-01", "c d") + Array("odd: \\n\\x41\t\u{1b}[2J ü\n".utf8) + [0xFF, 0x0A],
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

  @Test(.timeLimit(.minutes(60)), arguments: Fault.kills + Fault.errors + Fault.harmless)
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

  /// After a power cut, too: what is removed is durable elsewhere before.
  @Test func nothingIsRemovedBeforeItIsDurable() async throws {
    let outcome = try await play(nil)
    let events = outcome.former + outcome.events
    #expect(outcome.problems == [] && Self.isDurableFirst(events))
    let removals = events.filter { $0.kind == "unlink" && $0.path.hasPrefix("done/") && $0.phase == .returned }
    #expect(Set(removals.map(\.path)) == ["done/earlier", "done/a", "done/b~2", "done/c d"])
    // The test sees what is missing.
    #expect(!Self.isDurableFirst(events.filter { $0.kind != "fsync" || !$0.path.contains("2026-02") }))
    #expect(!Self.isDurableFirst(events.filter { $0.kind != "fsync" || $0.path != "done/archive" }))
    #expect(!Self.isDurableFirst(events.filter { $0.kind != "fsync" || $0.path != "done" }))
  }

  private static func isDurableFirst(_ events: [CallEvent]) -> Bool {
    var (synced, pending): (Set<Substring>, Bool) = ([], false)
    var isArchiveNamed = true
    for event in events where event.phase == .returned {
      switch (event.kind, event.path) {
      case ("mkdir", "done/archive"): isArchiveNamed = false
      case ("fsync", "done"): isArchiveNamed = true
      case ("fsync", "done/archive"): pending = false
      case ("fsync", _): synced.insert(Substring(event.path))
      case ("rename", _):
        if !synced.contains(event.source) { return false }
        pending = true
      case ("unlink", let path) where path.hasPrefix("done/") && !path.hasPrefix("done/archive/"):
        if pending || !isArchiveNamed { return false }
      default: break
      }
    }
    return true
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
    let archived = try Archive.receipts(in: world.spool.path("done/archive"))
    var problems: [String] = []
    for (name, bytes) in Self.receipts {
      let path = world.spool.path("done/\(name)")
      let isInDone = fileStatus(path) != nil
      let copies = archived.filter { $0.name == Array(name.utf8) }
      if copies.count > 1 { problems.append("\(name) is archived \(copies.count) times") }
      if copies.contains(where: { $0.bytes != bytes }) { problems.append("\(name) is archived with other bytes") }
      if try isInDone && readFile(path) != bytes { problems.append("done/\(name) has other bytes") }
      if copies.isEmpty && !isInDone { problems.append("\(name) is lost") }
      if isOver && (isInDone || copies.isEmpty) { problems.append("\(name) is not archived in the end") }
    }
    for name in ["young", "note"] where fileStatus(world.spool.path("done/\(name)")) == nil {
      problems.append("done/\(name) is gone")
    }
    let left = names(in: world.spool.path("done/archive"), isHiddenToo: true).filter {
      !["2026-01.tsv.gz", "2026-02.tsv.gz", ".lock"].contains($0)
    }
    if isOver, !left.isEmpty { problems.append("left behind: \(left)") }
    return problems
  }
}

/// Archives, read without the program's own code.
private enum Archive {
  static func receipts(in directory: String) throws -> [(name: [UInt8], bytes: [UInt8])] {
    var receipts: [(name: [UInt8], bytes: [UInt8])] = []
    for file in names(in: directory) where file.hasSuffix(".gz") {
      let text = try inflated("\(directory)/\(file)")
      for line in text.split(separator: 0x0A) where line.first != UInt8(ascii: "#") {
        let columns = line.split(separator: 0x09, omittingEmptySubsequences: false)
        guard columns.count == 8, file.utf8.starts(with: columns[0].prefix(7)) else {
          throw TestSupportError("a line of \(file): \(String(decoding: line, as: UTF8.self))")
        }
        receipts.append((try bytes(of: columns[1]), try bytes(of: columns[7])))
      }
    }
    return receipts
  }

  private static func inflated(_ path: String) throws -> [UInt8] {
    guard let pipe = popen("exec zcat '\(path)'", "r") else { throw TestSupportError("popen") }
    var text: [UInt8] = []
    while case let byte = getc(pipe), byte != EOF { text.append(UInt8(byte)) }
    guard pclose(pipe) == 0 else { throw TestSupportError("zcat \(path)") }
    return text
  }

  private static func bytes(of column: ArraySlice<UInt8>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = column
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "n"): bytes.append(0x0A)
      case UInt8(ascii: "x"):
        guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
          throw TestSupportError("an escape")
        }
        bytes.append(value)
        rest = rest.dropFirst(2)
      default: throw TestSupportError("an escape")
      }
    }
    return bytes
  }
}
