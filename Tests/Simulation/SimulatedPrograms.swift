import Glibc
import SystemPackage
import TestSupport

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// A hook, a gate or another program that a simulated worker has started: a process of its own, which the worker's
/// death does not end.
final class SimulatedChild: Child {
  private let world: World
  private let parent: Process
  fileprivate(set) var process: Process?
  /// It does no more what its parent does.
  fileprivate var isStarted = false
  fileprivate var isTold = false
  fileprivate var thread: SimulatedThread?
  private var waiter: SimulatedThread?
  private var ended: Int32?
  private let begun: Int64
  fileprivate(set) var output: [UInt8] = []
  fileprivate(set) var answer: [UInt8] = []
  var lastLine: [UInt8] { output.split(separator: 0x0A).last.map { Array($0.prefix(200)) } ?? [] }

  fileprivate init(_ world: World, of parent: Process) {
    (self.world, self.parent, begun) = (world, parent, world.disk.clock)
  }

  var isRunning: Bool { ended == nil && process?.isDead != true }

  fileprivate func end(_ status: Int32) {
    ended = status
    world.wake(waiter)
  }

  // MARK: what its parent does

  var hasEnded: Bool { ended != nil }

  func send(_ signal: Int32) {
    guard !parent.isDead, ended == nil else { return }
    isTold = true
    world.wake(thread)
    if signal == SIGKILL, let process {
      world.kill(process)
      ended = SIGKILL
    }
  }

  func status(waits: Bool) throws(Errno) -> Int32? {
    if parent.isDead { throw .noChildProcess }
    return ended
  }

  func take(milliseconds: Int64) -> Bool {
    if parent.isDead || ended != nil { return false }
    waiter = world.thread
    // Nothing depends on how often it looks, and long lives would take long.
    let lived = Int((world.disk.clock - begun) / 1_000_000)
    world.wait(parent, milliseconds: max(Int(milliseconds), lived / 20))
    waiter = nil
    return false
  }
}

extension SimulatedHost: ChildHost {
  func start(_ program: ChildProcess) throws(Errno) -> any Child {
    guard let programs = world.programs, !process.isDead else { throw .noSuchFileOrDirectory }
    return try programs.start(program, for: process)
  }
}

/// The hooks and gates of a simulated spool: how they live, and what they may rely on (spool(5), HOOKS).
final class SimulatedPrograms {
  /// In the links that the hook `resolve` prints.
  static let secret = "token="
  /// Where `spoolrun-entries` is.
  static let entries = "/usr/bin/spoolrun-entries"

  private let world: World
  private let play: Play
  private let servers: SimulatedServers
  private let spool: SimulatedDisk.Inode
  private var oracle: Oracle { play.oracle }
  private let hooks: Set<String>
  let hasGate: Bool
  /// Whether programs fail.
  var areFaulty = true
  /// Whether they do what people do.
  var meddle = true
  private var files: SimulatedDisk.Inode? { directory("files") }

  init(_ play: Play, _ servers: SimulatedServers, spool: SimulatedDisk.Inode) {
    (self.play, self.servers, self.spool, world) = (play, servers, spool, play.world)
    let world = play.world
    hooks = Set(["resolve", "verify", "deliver", "done", "failed"].filter { _ in world.isChance(2, in: 3) })
    hasGate = world.isChance(1, in: 3)
    (gatePeriod, gatePhase) = (Int64(world.pick([40, 300, 4000])), world.random(0...10))
    install()
    world.programs = self
    world.disk.onLockLeft = { file in
      world.blame("\(world.currentName) leaves the lock of \(file.inode.number) to a child")
    }
  }

  private func install() {
    let disk = world.disk
    do throws(SimulatedDisk.Failure) {
      try disk.makeDirectory(AT_FDCWD, Array("/away".utf8), 0o755)
      try disk.makeDirectory(AT_FDCWD, Array("\(Play.location)/hooks".utf8), 0o755)
      for hook in hooks.sorted() {
        let path = Array("\(Play.location)/hooks/\(hook)".utf8)
        try disk.close(disk.open(AT_FDCWD, path, O_CREAT | O_WRONLY, 0o755, process: 0))
      }
      try disk.sync(disk.root, .fileSystem)
    } catch {
      world.blame("hooks: \(error)")
    }
  }

  func has(_ hook: Hooks.Name) -> Bool { hooks.contains(hook.rawValue) }

  private func directory(_ name: String) -> SimulatedDisk.Inode? { spool.entries[Array(name.utf8)]?.inode }

  // MARK: lives

  /// What a program was told.
  private struct Call {
    let name: String
    let arguments: [String]
    let job: String
    let facts: [String: String]
    let limit: Int
    let parent: Process
    /// The job's number; nil if it is not known.
    var id: Int? {
      let last = ["RESOLVE", "OUTPUT", "URL"].lazy.compactMap { facts["SPOOLRUN_\($0)"] }.first { !$0.isEmpty }
      let number = last?.split(separator: "/").last.flatMap { Int($0) } ?? 0
      return number > 1_000_000 ? number - 1_000_000 : nil
    }
  }

  func start(_ program: ChildProcess, for parent: Process) throws(Errno) -> any Child {
    let facts = Dictionary(
      program.environment.map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }, uniquingKeysWith: { $1 })
    let isReader = program.arguments[0] == Self.entries
    let call = Call(
      name: isReader ? "entries" : facts["SPOOLRUN_HOOK"] ?? "gate", arguments: program.arguments,
      job: facts["SPOOLRUN_JOB"] ?? "", facts: facts, limit: program.seconds,
      parent: parent)
    world.tell("runs \(call.name) \(call.id.map { "for \($0)" } ?? "")")
    if program.kept >= 0, let kept = try? world.disk.file(program.kept), kept.inode.type != S_IFDIR {
      world.blame("\(call.name) keeps a file open")
    }
    check(call)
    if areFaulty, world.isChance(1, in: 15) {
      let error = world.pick([Errno.resourceTemporarilyUnavailable, .noMemory])
      world.tell("\(call.name) cannot be started", error)
      throw error
    }
    let child = SimulatedChild(world, of: parent)
    // A person who removes a job.
    let cancels = areFaulty && meddle && world.isChance(1, in: 25)
    let name = cancels ? "canceller \(call.name)" : "program \(call.name)"
    child.process = world.startChild(name, of: parent) { [self] process, system in
      child.thread = world.thread
      Host.current.wait(milliseconds: world.random(0...20))
      world.disk.exec(process.number)
      child.isStarted = true
      if process.isDead { return }
      if cancels { oracle.cancellers.insert(process.name) }
      let status = live(child, call, process, system, cancels: cancels)
      if process.isDead { return }
      world.tell("ends with \(status)")
      note(call, status, child)
      child.end(status)
      // What it has heard and not written down yet makes the difference.
      if areFaulty, call.name != "gate", world.isChance(1, in: 15), !world.omitted.fates.contains(parent.number) {
        parent.fates.append(Fate(world.pick([.death, .death, .powerCut]), after: world.random(1...60)))
      }
    }
    running.append((call, child))
    running.removeAll { !$0.child.isRunning }
    // As vfork(2).
    while !child.isStarted, child.process?.isDead == false, !parent.isDead { world.wait(parent, milliseconds: 1) }
    return child
  }

  private var running: [(call: Call, child: SimulatedChild)] = []

  /// - Returns: the status, as of wait(2).
  private func live(
    _ child: SimulatedChild, _ call: Call, _ process: Process, _ system: System, cancels: Bool
  ) -> Int32 {
    func pass(_ milliseconds: Int) -> Bool {
      var left = milliseconds
      while left > 0, !process.isDead, !child.isTold {
        let step = min(left, 1000)
        Host.current.wait(milliseconds: step)
        left -= step
      }
      return !child.isTold && !process.isDead
    }
    var length = world.random(0...world.pick([20, 20, 500, 4000]))
    if areFaulty, world.isChance(1, in: 60) { length = world.pick([40_000, (min(call.limit, 400) + 20) * 1000]) }
    // The work is done at any moment of its life.
    let before = world.random(0...length)
    let isWhole = pass(before) && act(call, process, system, cancels: cancels) && pass(length - before)
    if process.isDead { return SIGKILL }
    if !isWhole, child.isTold {
      switch world.random(1...4) {
      // A shell whose command was ended.
      case 1: return 143 << 8
      // It does not hear of it.
      case 2: Host.current.wait(milliseconds: world.random(1000...20_000))
      default: return SIGTERM
      }
    }
    if call.name == "gate" { return gate() }
    if call.name == "resolve" { return resolve(call, child) }
    if call.name == "entries", let failure = printEntries(call, process) { return failure }
    if process.isDead { return SIGKILL }
    guard areFaulty else { return 0 }
    switch world.random(1...12) {
    case 1, 2: return Int32(world.random(1...125)) << 8
    case 3: return Int32(world.random(126...255)) << 8
    case 4: return world.pick([SIGKILL, SIGSEGV])
    default: return 0
    }
  }

  /// As `spoolrun-entries`, of a list of URLs. Whatever ends it, it has printed a part.
  /// - Returns: the status of what has failed.
  private func printEntries(_ call: Call, _ process: Process) -> Int32? {
    let disk = world.disk
    do throws(SimulatedDisk.Failure) {
      let (list, output) = (call.arguments[call.arguments.count - 2], call.arguments[call.arguments.count - 1])
      let bytes = try disk.find(AT_FDCWD, Array(list.utf8)).bytes
      if areFaulty, world.isChance(1, in: 20) { return 65 << 8 }
      let file = try disk.open(AT_FDCWD, Array(output.utf8), O_WRONLY, 0, process: process.number)
      var end = 0
      for line in bytes.split(separator: 0x0A) {
        let url = String(decoding: line, as: UTF8.self)
        let text = Array((FeedEntry(identity: url, urls: [url]).text ?? "").utf8)
        let target = try disk.file(file)
        _ = try text.withUnsafeBytes { bytes in
          Result { () throws(SimulatedDisk.Failure) in try disk.write(bytes, to: target, at: end) }
        }.get()
        end += text.count
        Host.current.wait(milliseconds: world.random(0...3))
        if process.isDead || areFaulty && world.isChance(1, in: 100) { return SIGKILL }
      }
      try disk.close(file)
      return nil
    } catch {
      return 66 << 8
    }
  }

  /// What a person's script may do with the spool.
  /// - Returns: false if it cannot.
  private func act(_ call: Call, _ process: Process, _ system: System, cancels: Bool) -> Bool {
    guard areFaulty, meddle, cancels || world.isChance(1, in: 4) else { return true }
    do {
      let owner = WorkerID(host: "host\(process.host)", process: Int32(process.number), tag: UInt32(process.number))
      let spool = try Spool(
        Play.location, owner: owner, boot: "boot\(world.boots)-\(process.host)", system: system, kind: play.kind)
      if cancels {
        try remove(call, spool)
      } else if call.name == "deliver", world.isChance(1, in: 2) {
        try takeAway(call, spool)
      } else if drops < 5, world.isChance(1, in: 2) {
        try drop(spool, process)
      } else {
        try pause(call, spool)
      }
      return true
    } catch {
      if !process.isDead { world.tell("in vain", error) }
      return world.isChance(1, in: 2)
    }
  }

  /// The claim of the job, or whatever has its name now.
  private func place(_ call: Call, _ spool: Spool) throws -> Path? {
    let claim = try spool.list(.cur).first { ClaimName($0)?.job.display == call.job }
    return claim.map { Path(.cur, $0) }
  }

  private func remove(_ call: Call, _ spool: Spool) throws {
    guard let place = try place(call, spool) else { return }
    try spool.system.unlink(spool.root, place)
    world.tell("rm \(call.job)")
  }

  private func pause(_ call: Call, _ spool: Spool) throws {
    guard let place = try place(call, spool) else { return }
    try spool.system.renameNoReplace(spool.root, place, Path(.hold, FileName(call.job)))
    world.tell("mv \(call.job) to hold")
  }

  private func drop(_ spool: Spool, _ process: Process) throws {
    drops += 1
    let id = 500_000 + drops
    let place = try Drops(spool).drop(
      Oracle.text(id) + play.more(id), as: JobName(FileName(world.pick(play.names)))!)
    if process.isDead { return }
    world.tell("dropped \(id) as \(place.name.display)")
    oracle.acknowledge(id)
  }
  private var drops = 0

  /// It may move or remove the file.
  private func takeAway(_ call: Call, _ spool: Spool) throws {
    guard let id = call.id else { return }
    taken.insert(id)
    let file = Path("files/\(1_000_000 + id)")
    if world.isChance(1, in: 2) {
      try spool.system.unlink(spool.root, file)
    } else {
      try spool.system.rename(spool.root, file, Path("/away/\(id)"))
    }
    world.tell("has taken \(id) away")
  }
  private var taken: Set<Int> = []
  /// Whether a hook has perhaps taken the payload away.
  func hasTaken(_ id: Int) -> Bool { taken.contains(id) }

  // MARK: gates

  private let gatePeriod: Int64
  private let gatePhase: Int
  private var lastYes: [Int: Int64] = [:]

  private func gate() -> Int32 {
    guard areFaulty else { return 0 }
    if world.isChance(1, in: 20) { return world.pick([127 << 8, SIGKILL]) }
    let number = Int(world.disk.clock / 1_000_000_000 / gatePeriod) + gatePhase
    return number % 3 == 0 ? 0 : 1 << 8
  }

  /// Only a yes opens the gate, for so many seconds, and for what has begun by then.
  private static let validity: Int64 = 10 + 60

  private func checkGate(_ process: Process) {
    guard hasGate, !process.hadTrouble, process.name.hasPrefix("worker") else { return }
    let passed = world.disk.clock - (lastYes[process.number] ?? 0)
    if passed > Self.validity * 1_000_000_000 { world.blame("\(process.name) claims a job behind a closed gate") }
  }

  // MARK: links

  private struct Links {
    let id: Int
    /// Whether they may be used at all.
    let isGood: Bool
    let expires: Int64
  }
  private var links: [Int: Links] = [:]

  private func resolve(_ call: Call, _ child: SimulatedChild) -> Int32 {
    guard let id = call.id else { return 1 << 8 }
    let number = links.count + 1
    let host = world.pick(["l", "h"])
    var answer = "url: http://\(host)/\(1_000_000 + id)?\(Self.secret)\(number)\n"
    var (status, isGood): (Int32, Bool) = (0, true)
    if areFaulty, world.isChance(1, in: 3) {
      isGood = false
      switch world.random(1...5) {
      case 1: answer += "output: elsewhere\n"
      case 2: answer += "nonsense\n"
      case 3: answer += "# " + String(repeating: "x", count: ChildProcess.outputLimit)
      case 4: status = Int32(world.pick([1, 99, 126])) << 8
      default: status = 100 << 8
      }
    } else if servers.resource(id).hasDigest, areFaulty, world.isChance(1, in: 8) {
      (answer, isGood) = (answer + "crc32: 12345678\n", servers.declaredDigest(id) == nil)
    }
    let seconds = areFaulty ? world.pick([1, 30, 100_000]) : 100_000
    let links = Links(id: id, isGood: isGood, expires: world.disk.clock + Int64(seconds) * 1_000_000_000)
    self.links[number] = links
    child.answer = Array(answer.utf8.prefix(ChildProcess.outputLimit + 1))
    return status
  }

  /// - Returns: the status of the answer to a request, if that is not the server's; or blames it.
  func judge(_ url: URLParts, _ id: Int, _ process: Process) -> Int? {
    guard resolving.contains(id) else { return nil }
    guard let number = url.query?.split(separator: "=").last.flatMap({ Int($0) }), let links = links[number] else {
      oracle.blame(id, "is fetched from its own URL in place of a link")
      return nil
    }
    if links.id != id { oracle.blame(id, "is fetched by the link of \(links.id)") }
    if !links.isGood { oracle.blame(id, "is fetched by the link of an answer that is to be refused") }
    return world.disk.clock > links.expires ? world.pick([401, 403, 410]) : nil
  }

  /// The line of a job that asks for links; nil for most.
  func line(of id: Int) -> String? {
    guard has(.resolve), id % 3 == 2 else { return nil }
    resolving.insert(id)
    return "resolve: \(1_000_000 + id)\n"
  }
  private var resolving: Set<Int> = []

  // MARK: what must be true

  /// By jobs: how often a worker has moved them to `done/` and to `failed/`, and how often it has told the hooks.
  private var ends: [Int: (done: Int, failed: Int)] = [:]
  private var told: [Int: (done: Int, failed: Int)] = [:]
  /// The checksums of data that the hook `verify` has accepted.
  private var accepted: [Int: Set<String>] = [:]
  private var delivered: Set<Int> = []
  /// When somebody besides workers last touched a job.
  private var touched: [Int: Int64] = [:]

  private func checksum(_ bytes: [UInt8]) -> String {
    var checksum = Checksum()
    bytes.withUnsafeBytes { checksum.update($0) }
    return "\(checksum)"
  }

  /// When a program is about to start.
  private func check(_ call: Call) {
    guard let id = call.id else { return }
    switch call.name {
    case "deliver": checkDelivery(id, call)
    case "done":
      told[id, default: (0, 0)].done += 1
      if told[id]!.done > ends[id, default: (0, 0)].done { oracle.blame(id, "is told as done, and is not") }
    case "failed":
      told[id, default: (0, 0)].failed += 1
      if told[id]!.failed > ends[id, default: (0, 0)].failed {
        oracle.blame(id, "is told as given up, and is not")
      }
    default: break
    }
  }

  private func checkDelivery(_ id: Int, _ call: Call) {
    let others = running.filter { $0.call.name == "deliver" && $0.call.id == id && $0.child.isRunning }
    if let other = others.first(where: { $0.call.parent !== call.parent && !$0.call.parent.isDead })?.call.parent,
      !other.hadTrouble, !call.parent.hadTrouble, other.host == call.parent.host, touched[id] == nil
    {
      oracle.blame(id, "is delivered by \(other.name) and \(call.parent.name)")
    }
    let name = Array("\(1_000_000 + id)".utf8)
    guard let files else { return }
    if let bytes = files.entries[name]?.inode.bytes {
      if call.facts["SPOOLRUN_SIZE"] != "\(bytes.count)" || call.facts["SPOOLRUN_CRC32"] != checksum(bytes) {
        oracle.blame(id, "is delivered as something else")
      }
      if !world.disk.isDurable(name, in: files) { oracle.blame(id, "is delivered, and its payload is not durable") }
    } else if others.isEmpty {
      oracle.blame(id, "is delivered without a payload")
    }
    guard let job = directory("cur")?.entries.values.first(where: { Oracle.id(in: $0.inode.bytes) == id })?.inode else {
      return
    }
    let lines = job.bytes.split(separator: 0x0A)
    func last(_ key: String) -> Int { lines.lastIndex { $0.starts(with: "\(key): ".utf8) } ?? -1 }
    // A power cut may tear what is between.
    if last("done") > last("requeued"), world.boots == 1 { oracle.blame(id, "is delivered again after its receipt") }
    if job.durableBytes.firstRange(of: Array("published: ".utf8)) == nil {
      oracle.blame(id, "is delivered, and its journal does not say durably that it is published")
    }
  }

  /// When a program has ended.
  private func note(_ call: Call, _ status: Int32, _ child: SimulatedChild) {
    if call.name == "gate", status == 0 { lastYes[call.parent.number] = world.disk.clock }
    guard let id = call.id, status == 0 else { return }
    if call.name == "deliver" { delivered.insert(id) }
    if call.name == "verify" { accepted[id, default: []].insert(call.facts["SPOOLRUN_CRC32"] ?? "") }
  }

  func look(_ changes: [SimulatedDisk.Change]) {
    let process = world.thread?.process
    for change in changes {
      guard let inode = change.inode ?? change.former, inode.type == S_IFREG else { continue }
      let isOfWorker = process?.name.hasPrefix("worker") == true
      if change.inode != nil, isOfWorker, change.directory === files,
        let number = Int(String(decoding: change.name, as: UTF8.self))
      {
        checkPublished(number - 1_000_000, inode)
      }
      guard change.directory !== files, let id = Oracle.id(in: inode.bytes) else { continue }
      if !isOfWorker { touched[id] = world.disk.clock }
      guard change.inode != nil, isOfWorker, let process else { continue }
      if change.directory === directory("cur"), changes.count == 2, changes[0].inode == nil,
        changes[0].directory !== directory("tmp")
      {
        checkGate(process)
      }
      if change.directory === directory("done") {
        ends[id, default: (0, 0)].done += 1
        if has(.deliver), !delivered.contains(id) { oracle.blame(id, "is done, and was not delivered") }
      }
      if change.directory === directory("failed") { ends[id, default: (0, 0)].failed += 1 }
    }
  }

  private func checkPublished(_ id: Int, _ file: SimulatedDisk.Inode) {
    guard has(.verify), accepted[id]?.contains(checksum(file.bytes)) != true else { return }
    oracle.blame(id, "is published without a verdict")
  }

  func checkEnd() {
    for (directory, name) in spool.entries.sorted(by: { $0.value.order < $1.value.order }).map({ ($1.inode, $0) }) {
      for entry in directory.entries.values
      where entry.inode.bytes.firstRange(of: Array(Self.secret.utf8)) != nil {
        world.blame("a secret is written below \(String(decoding: name, as: UTF8.self))")
      }
    }
  }
}
