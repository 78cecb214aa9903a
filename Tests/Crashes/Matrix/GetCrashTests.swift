import Glibc
import Spool
import TestSupport
import Testing

/// `get`, killed at each of its calls: the same command goes on, and leaves the file and nothing else.
@Suite struct GetCrashTests {
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }
  private static let body = Array("payload\n".utf8)

  @Test(.timeLimit(.minutes(60)), arguments: Fault.kills)
  func theSameCommandGoesOn(fault: Fault) async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", ["ETag: \"1\""], body: Self.body) }
    let whole = try await play(nil, server)
    #expect(whole.problems == [])
    let calls = fault.counted.count(in: whole.events)
    try #require(calls > (fault.counted == .write ? 3 : 60), "\(calls)")
    let struck = Counter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...calls {
        group.addTask {
          try await Matrix.slots.withSlot {
            let outcome = try await play(fault.at(number), server)
            #expect(outcome.problems == [], "\(fault.at(number))")
            if outcome.events.contains(where: { $0.phase == .struck }) { _ = struck.next() }
          }
        }
      }
      try await group.waitForAll()
    }
    // A run that takes long makes some calls more than others: checkpoints come by the clock.
    #expect(struck.current * 10 >= calls * 9 - 10, "\(struck.current) of \(calls)")
  }

  private struct Outcome: Sendable {
    var problems: [String] = []
    var events: [CallEvent] = []
  }

  private func play(_ fault: Fault?, _ server: ScriptedServer) async throws -> Outcome {
    let inMemory = try await Need.otherFileSystem.isMet()
    let home = try TemporaryDirectory(in: inMemory ? TemporaryDirectory.otherFileSystem : nil)
    let (here, state, url) = ("\(home.path)/here", "\(home.path)/state", server.url("/a"))
    for path in [here, state] { try #require(mkdir(path, 0o700) == 0) }
    // As the command calls it.
    let name = "a-" + PayloadName.fingerprint(of: [url, "\(here)/a"]).prefix(16)
    let root = NamedRoots.name(for: here)
    try writeFile("\(home.path)/text", Array("url: \(url)\noutput: a\nroot: \(root)\n".utf8))
    let arguments = [
      "\(here)/.spoolrun", "record=\(home.path)/record", "get=\(here)", "state=\(state)/spoolrun", "job=\(name)",
      "text=\(home.path)/text",
    ]
    let result = try await Self.rigs.get().run(
      arguments + (fault.map { ["fault=\($0)"] } ?? []), outputPath: "\(home.path)/output")
    var outcome = Outcome()
    var offset = 0
    outcome.events = try CallEvent.record(at: "\(home.path)/record", from: &offset)
    switch result.status {
    case .exited(0) where !outcome.events.contains(where: { $0.phase == .struck }): break
    case .killed(signal: SIGKILL) where fault != nil: break
    default: outcome.problems.append("it ended with \(result)")
    }
    let next = try await startSpoolrun(
      ["get", url], environment: ["XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state], directory: here
    ).result()
    if next.status != .exited(0) { outcome.problems.append("the same command: \(next)") }
    let left = names(in: here, isHiddenToo: true)
    if left != ["a"] { outcome.problems.append("left: \(left)") }
    if try readFile("\(here)/a") != Self.body { outcome.problems.append("it is another file") }
    let (gets, got) = (names(in: "\(state)/spoolrun/gets"), names(in: "\(state)/spoolrun/got"))
    if gets != [] || got.count != 1 { outcome.problems.append("records: \(gets), \(got)") }
    return outcome
  }
}
