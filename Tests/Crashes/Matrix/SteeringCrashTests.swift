import Glibc
import TestSupport
import Testing

/// Commands that change a job's text, killed or failing at each of their calls: the job is in one place, where it goes
/// on, with its old text or the new one.
@Suite struct SteeringCrashTests {
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }
  private static let lines = "# mine\nfailed: 2026-01-01T00:00:00Z attempt=1 class=temporary code=cut at=0\n"

  struct Command: Sendable, CustomStringConvertible {
    let change: String
    let from: String
    let to: String
    var exchanges = true

    var description: String { "\(change) \(from) -> \(to)\(exchanges ? "" : ", without exchange")" }
    /// By which it can be told from the old text.
    var news: String { change == "url" || change == "get" ? "https://host/new" : "priority: \(change)\n" }
  }

  private static let commands =
    [
      ("url", "new", "new"), ("url", "partial", "new"), ("url", "failed", "new"), ("url", "hold", "hold"),
      ("url", "cur", "new"), ("low", "partial", "partial"), ("normal", "urgent", "new"), ("get", "done", "new"),
    ].map { Command(change: $0.0, from: $0.1, to: $0.2) }
    + [("url", "failed", "new"), ("url", "hold", "hold"), ("low", "partial", "partial")].map {
      Command(change: $0.0, from: $0.1, to: $0.2, exchanges: false)
    }

  @Test(.timeLimit(.minutes(60)), arguments: commands)
  func theJobGoesOn(command: Command) async throws {
    let whole = try await play(command, nil)
    #expect(whole.problems == [])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for fault in Fault.kills + Fault.errors + Fault.harmless {
        let calls = fault.counted.count(in: whole.events)
        try #require(calls > 0)
        for number in 1...calls {
          group.addTask {
            try await Matrix.slots.withSlot {
              let problems = try await play(command, fault.at(number)).problems
              #expect(problems == [], "\(command), \(fault.at(number))")
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// The new text is durable before a name leads to it.
  @Test func theTextIsDurableFirst() async throws {
    for command in Self.commands {
      let events = try await play(command, nil).events.filter { $0.phase == .returned }
      let synced = try #require(events.firstIndex { $0.kind == "fsync" && $0.path.hasPrefix("tmp/") })
      let changed = try #require(events.firstIndex { $0.kind == "rename" && $0.source.hasPrefix("tmp/") })
      #expect(synced < changed, "\(command)")
    }
  }

  // MARK: one case

  private struct Outcome: Sendable {
    var problems: [String] = []
    var events: [CallEvent] = []
  }

  private func play(_ command: Command, _ fault: Fault?) async throws -> Outcome {
    let world = try await World(isInMemory: Need.otherFileSystem.isMet(), onOtherFileSystem: false)
    let name = command.from == "cur" ? "a:host.1.0000000a" : "a"
    let old = "https://host/old\n" + (command.change == "normal" ? "priority: high\n" : "") + Self.lines
    try writeFile(world.spool.path("\(command.from)/\(name)"), Array(old.utf8))
    var outcome = Outcome()
    let result = try await rig(world, command, fault)
    outcome.problems += try problems(world, command, old, result, fault)
    var offset = 0
    outcome.events = try CallEvent.record(at: world.outside("record"), from: &offset)
    return outcome
  }

  private func rig(_ world: World, _ command: Command, _ fault: Fault?) async throws -> CommandResult {
    let plan = (fault.map { ["fault=\($0)"] } ?? []) + (command.exchanges ? [] : ["exchange=unknown"])
    let arguments = [world.spool.root, "record=\(world.outside("record"))", "steer=\(command.change)"] + plan
    return try await Self.rigs.get().run(arguments, outputPath: world.outside("output"))
  }

  private func problems(
    _ world: World, _ command: Command, _ old: String, _ result: CommandResult, _ fault: Fault?
  ) throws -> [String] {
    var problems: [String] = []
    switch result.status {
    case .killed(signal: SIGKILL) where fault?.isKill == true: break
    case .exited(0): break
    case .exited(74) where fault?.isError == true || fault?.argument == "EINTR": break
    // It keeps moving, as far as the command can see.
    case .exited(1) where fault?.isError == true: break
    default: problems.append("it ended with \(result.status): \(result.errors)")
    }
    let places = TemporarySpool.states.flatMap { state in world.spool.names(state).map { "\(state)/\($0)" } }
    guard places.count == 1, let place = places.first else { return problems + ["places: \(places)"] }
    let state = String(place.prefix { $0 != "/" })
    // A claim whose owner is gone, and a job that is due in a minute, go on.
    var allowed = Set([command.from, command.to])
    if command.from == "cur" { allowed.insert("partial") }
    if !command.exchanges { allowed.insert("cur") }
    if !allowed.contains(state) { problems.append("it is \(place)") }
    let text = String(decoding: try readFile(world.spool.path(place)), as: UTF8.self)
    let isNew = text != old
    let kept = Self.lines.split(separator: "\n").allSatisfy { text.contains($0 + "\n") }
    if isNew, !text.contains(command.news) || !kept { problems.append("its text: \(text)") }
    if result.status == .exited(0), !isNew || state != command.to { problems.append("not done: \(place)\n\(text)") }
    if fault?.argument == "ENOSPC", result.status != .exited(0), isNew, fault?.counted == .room {
      problems.append("changed, though it says that it is not")
    }
    if command.from == "cur", state == "partial" {
      let due = Int(try modificationTime(world.spool.path(place))) - time(nil)
      if due > 65 { problems.append("due in \(due) s") }
    }
    if fault?.isHarmless ?? true, !world.spool.names("tmp").isEmpty {
      problems.append("left behind: \(world.spool.names("tmp"))")
    }
    return problems
  }

  private func modificationTime(_ path: String) throws -> time_t {
    guard let status = fileStatus(path) else { throw TestSupportError("stat", path, errno: ENOENT) }
    return status.st_mtim.tv_sec
  }
}
