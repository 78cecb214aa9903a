import Glibc
import TestSupport
import Testing

/// Standing orders: between the list, the jobs that come of it, and the record of them.
extension Scenario {
  static let standing = [
    Scenario(
      name: "standing order", jobs: [Job(output: "a.bin", isOrdered: true), Job(output: "b.bin", isOrdered: true)],
      stride: 3, isNamedByOutput: false, setUp: { try $0.order() },
      answer: { world, request, reply in try world.answerOrder(request, reply) }),
    Scenario(
      name: "subscription to a file",
      jobs: [Job(output: "a.bin", before: Version.previous.bytes, isOrdered: true)], stride: 3,
      isWatched: true, isNamedByOutput: false, setUp: { try $0.orderFile() },
      answer: { _, request, reply in try Version.current.serve(request, reply) }),
    Scenario(
      // Both look at the order; one of them fetches the list.
      name: "standing order, two workers",
      jobs: [Job(output: "a.bin", isOrdered: true), Job(output: "b.bin", isOrdered: true)],
      workers: 2, stride: 5,
      isNamedByOutput: false, setUp: { try $0.order() },
      answer: { world, request, reply in try world.answerOrder(request, reply) }),
  ]
}

extension World {
  fileprivate func order() throws {
    guard mkdir(spool.path("standing"), 0o700) == 0 else { throw TestSupportError("mkdir standing") }
    try writeFile(spool.path("standing/order"), Array("url: \(base)/list\nevery: 300d\nfirst: all\n".utf8))
    try makeOrderDue()
  }

  /// An order to replace the last version of a file.
  fileprivate func orderFile() throws {
    guard mkdir(spool.path("standing"), 0o700) == 0 else { throw TestSupportError("mkdir standing") }
    let text = "url: \(base)/a.bin\nevery: 300d\nentries: file\n"
    try writeFile(spool.path("files/a.bin"), Version.previous.bytes)
    try writeFile(spool.path("standing/order"), Array(text.utf8))
    try makeOrderDue()
  }

  /// The list, and what it names.
  fileprivate func answerOrder(_ request: ServerRequest, _ reply: Reply) throws {
    guard request.target == "/list" else { return try Version.current.serve(request, reply) }
    let names = ["a.bin", "b.bin"]
    try reply.respond("200 OK", ["ETag: \"1\""], body: Array((names.map { "\(base)/\($0)\n" }.joined()).utf8))
  }

  /// Whether the standing order is there and was never checked.
  var hasUncheckedOrder: Bool {
    ["standing", "cur"].contains { state in
      spool.names(state).filter { $0 == "order" || $0.hasPrefix("order:") }.contains { name in
        // It may move under our hands.
        guard let text = try? readFile(spool.path("\(state)/\(name)")) else { return false }
        return !String(decoding: text, as: UTF8.self).contains("\nchecked: ")
      }
    }
  }

  func makeOrderDue() throws {
    guard spool.names("standing").contains("order") else { return }
    try setModificationTime(spool.path("standing/order"), secondsFromNow: -60)
  }
}

/// `entries: file` with `keep: 2`, killed at each call: whoever reads the file sees a whole version, and an old one
/// goes only when the new one is there for good.
@Suite struct KeptVersionsCrashTests {
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }

  @Test(.timeLimit(.minutes(60)), arguments: Fault.kills)
  func `an old version goes only for a new one`(fault: Fault) async throws {
    let (problems, events) = try await play(nil)
    #expect(problems == [])
    let calls = fault.counted.count(in: events)
    try #require(calls > 5)
    try await withThrowingTaskGroup(of: Void.self) { group in
      // The fetch is what the scenarios above are about: this is about what comes behind it.
      for number in stride(from: calls, to: calls / 2, by: -1) {
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

  /// The oldest first.
  private static let old = [("a~20260101T000000Z.bin", Version.previous), ("a~20260201T000000Z.bin", Version.flipped)]
  private static let current = "a.bin"

  private func play(_ fault: Fault?) async throws -> (problems: [String], events: [CallEvent]) {
    let world = try await World(isInMemory: Need.otherFileSystem.isMet(), onOtherFileSystem: false)
    let server = try ScriptedServer { request, reply in try Version.current.serve(request, reply) }
    world.base = server.url("")
    for (number, (output, version)) in Self.old.enumerated() {
      let time = "2026-0\(number + 1)-01T00:00:0"
      let receipt = """
        url: \(world.base)/a.bin
        output: \(output)
        overwrite: yes
        started: \(time)0Z attempt=1 worker=h.1.0 boot=b mirror=1 url=http://h/a.bin
        verified: \(time)1Z size=\(Version.length) crc32=\(version.crc32) part=7
        done: \(time)1Z attempts=1 output=\(output) bytes-fetched=\(Version.length) seconds=1

        """
      try writeFile(world.spool.path("done/order-000000000000000\(number)"), Array(receipt.utf8))
      try writeFile(world.spool.path("files/\(output)"), version.bytes)
    }
    let (last, path) = (world.spool.path("files/\(Self.old[1].0)"), world.spool.path("files/\(Self.current)"))
    guard link(last, path) == 0, mkdir(world.spool.path("standing"), 0o700) == 0 else {
      throw TestSupportError("link or mkdir")
    }
    let order = """
      url: \(world.base)/a.bin
      every: 300d
      entries: file
      keep: 2
      checked: 2026-02-01T00:00:00Z entries=1 new=1
      seen: 0000000000000001 0000000000000000

      """
    try writeFile(world.spool.path("standing/order"), Array(order.utf8))

    var problems: [String] = []
    for round in 1...6 {
      try world.makeOrderDue()
      for name in world.spool.names("partial") where !name.hasSuffix(".part") { try world.spool.makeDue(name) }
      let plan = round == 1 ? fault.map { ["fault=\($0)"] } ?? [] : []
      let arguments = [world.spool.root, "record=\(world.recordPath)", "checkpoint=8192"] + plan
      let result = try await Self.rigs.get().run(arguments, outputPath: world.outside("output"))
      if ![.exited(0), .exited(75), .killed(signal: SIGKILL)].contains(result.status) { problems.append("\(result)") }
      problems += try fileProblems(world)
      if fault == nil || round > 1, try isOver(world) { break }
      if round == 6 { problems.append("not over: \(filesBelow(world.payloadRoot)) \(world.spool.names("done"))") }
    }
    var offset = 0
    return (problems, try CallEvent.record(at: world.recordPath, from: &offset))
  }

  private func fileProblems(_ world: World) throws -> [String] {
    var problems: [String] = []
    let isNew = world.spool.names("done").contains { !$0.hasPrefix("order-000000000000000") }
    let whole = [Version.flipped, .current]
    let bytes = try? readFile("\(world.payloadRoot)/\(Self.current)")
    if !whole.contains(where: { $0.bytes == bytes }) { problems.append("\(Self.current) is no whole version") }
    for (number, (output, version)) in Self.old.enumerated() {
      let bytes = try? readFile("\(world.payloadRoot)/\(output)")
      let isThere = world.spool.names("done").contains("order-000000000000000\(number)")
      if bytes == version.bytes {
        if !isThere { problems.append("\(output) has no receipt") }
      } else if bytes != nil || number == 1 || !isNew {
        problems.append("\(output) is wrong, or gone too early")
      }
    }
    return problems
  }

  private func isOver(_ world: World) throws -> Bool {
    let files = names(in: world.payloadRoot, isHiddenToo: true)
    let current = try readFile("\(world.payloadRoot)/\(Self.current)")
    return files.count == 3 && !files.contains(Self.old[0].0) && current == Version.current.bytes
      && world.spool.names("done").count == 2
      && ["new", "cur", "partial"].allSatisfy { names(in: world.spool.path($0), isHiddenToo: true).isEmpty }
  }
}
