import Dispatch
import Glibc
import TestSupport

@testable import Spool

/// A process of the simulated world. Once it is dead, its calls to the kernel fail and change nothing, and waits take
/// no time, so that its code comes to an end.
final class Process: @unchecked Sendable {
  let number: Int
  let name: String
  /// Its host. The disk's own is 1.
  let host: Int
  /// Owns the files that it makes.
  var user = geteuid()
  var isDead = false
  /// By the disk's clock.
  fileprivate(set) var began: Int64 = 0
  /// Whether it was ever stopped, or a call of it failed.
  fileprivate(set) var hadTrouble = false
  /// It is about to replace a file by a rename, and cannot see whether that has just been moved: a known hole, if it
  /// stands still right then.
  var isReplacing = false
  /// It has just done that: so many calls, in which it looks whether the file was moved, belong to it.
  var looks = 0
  /// It has taken a job to `tmp/`, and looks whether to put it back: the same.
  var isTaking = false
  /// It got a signal to stop.
  private(set) var isTold = false
  /// The thread that notices it.
  var listener: SimulatedThread?
  /// What happens to it at one of its calls.
  var fates: [Fate] = []
  /// It is stopped until this time.
  fileprivate var frozenUntil: Int64 = 0
  /// Nanoseconds that it has waited since it is dead.
  fileprivate var ghostTime: Int64 = 0
  private var ghostCalls = 0

  init(_ number: Int, _ name: String, on host: Int = 1) { (self.number, self.name, self.host) = (number, name, host) }

  func tellToStop() {
    isTold = true
    listener?.wakes = 0
  }

  fileprivate func countGhostCall() {
    ghostCalls += 1
    precondition(ghostCalls < 1_000_000, "\(name) is dead and does not end")
  }
}

/// A thread of a process, which runs only when it is its turn.
final class SimulatedThread: @unchecked Sendable {
  let process: Process
  fileprivate let turn = DispatchSemaphore(value: 0)
  /// It does nothing before this time.
  fileprivate var wakes: Int64 = 0

  fileprivate init(_ process: Process) { self.process = process }
}

/// What happens to a process at its n-th call of a kind from now.
struct Fate {
  /// Those of few kinds make the difference after a crash.
  enum Kind: CaseIterable { case any, sync, truncate, rename }

  enum Blow {
    case death
    /// It is stopped, as by SIGSTOP, for so many seconds.
    case freeze(Int)
    /// The call fails, if it changes something.
    case failure(Int32)
    /// The same, and the process dies soon after.
    case lastFailure(Int32)
    case powerCut
  }

  let kind: Kind
  var calls: Int
  let blow: Blow

  init(_ blow: Blow, at kind: Kind = .any, after calls: Int) {
    (self.kind, self.calls, self.blow) = (kind, calls, blow)
  }
}

/// What is left out of a story, to make it short: processes, and what happens to them, by their numbers.
struct Omitted: Sendable {
  var processes: Set<Int> = []
  var fates: Set<Int> = []
}

/// A disk, its clock, and processes of which one runs at a time. A seed decides which one goes on after each call to
/// the kernel, so the same seed plays the same story.
final class World: @unchecked Sendable {
  let disk = SimulatedDisk()
  private(set) lazy var inotify = SimulatedInotify(self)
  var generator: SeededGenerator
  private var processes: [Process] = []
  var isReplacing: Bool { processes.contains { $0.isReplacing } }
  private var threads: [SimulatedThread] = []
  /// No two processes have the same number, and so no two workers the same name.
  private var started = 0
  private var current: SimulatedThread?
  private let allEnded = DispatchSemaphore(value: 0)
  /// Seconds by which the clocks of other hosts than the first, which has the disk's, are ahead.
  var skew: Int64 = 0
  /// Whether the story tells of each call.
  let tracesCalls = getenv("SIMULATE_CALLS") != nil
  /// What happened, for a person.
  private(set) var story: [String] = []
  /// Of the story, and the same for the same seed.
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var problems: [String] = []
  private(set) var boots = 1
  /// Whether the power was cut in the last ``run()``.
  private(set) var wasCut = false
  private(set) var calls = 0
  /// When there is something for a power cut to lose.
  enum Moment {
    case checkpoint, otherVersion
    /// A file that was emptied has as many bytes again as a power cut would have left of the old ones.
    case rewritten
    /// A subscription has noted what it has dropped.
    case checked
  }
  func note(_ moment: Moment) { onMoment(moment) }
  /// Is told of them.
  var onMoment: (Moment) -> Void = { _ in }
  /// Is told the name of a file that got one more, where names are moved by link and unlink.
  var onLink: ([UInt8]) -> Void = { _ in }
  /// Is told whose flush takes long.
  var onSlowFlush: (Process) -> Void = { _ in }
  /// Is told who dies; nil for all, by a power cut.
  var onDeath: (Process?) -> Void = { _ in }
  /// Is told whose action has ended.
  var onOutcome: (String) -> Void = { _ in }

  func forgetListeners() {
    (onMoment, onLink, onSlowFlush, onDeath, onOutcome) = ({ _ in }, { _ in }, { _ in }, { _ in }, { _ in })
    programs = nil
  }

  /// A process makes about so many calls before another one's turn.
  private let rest: Int
  /// One of so many calls takes a while.
  private let callsToWait: Int
  /// The same of those that make something durable.
  let syncsToWait: Int
  var omitted = Omitted()
  /// The names of all processes; those before ``isEnding`` can be left out.
  private(set) var cast: [(number: Int, name: String)] = []
  var isEnding = false

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    rest = [1, 3, 12].randomElement(using: &generator)!
    callsToWait = [10, 100, 1_000_000, 1_000_000].randomElement(using: &generator)!
    syncsToWait = [3, 20, 20, 100].randomElement(using: &generator)!
    disk.onTrace = { [unowned self] in note($0) }
    disk.onEvent = { [unowned self] in inotify.tell($0, $1, $2) }
    disk.onRewrite = { [unowned self] in note(.rewritten) }
  }

  // MARK: chance

  func random(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }

  func isChance(_ one: Int, in many: Int) -> Bool { random(1...many) <= one }

  func pick<Element>(_ from: [Element]) -> Element { from.randomElement(using: &generator)! }

  // MARK: the story

  /// - Parameter error: what came of it; its text has names of files, so only the rest counts for ``hash``.
  func tell(_ text: String, _ error: (any Error)? = nil) {
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    note(error.map { "\(text): \($0)" } ?? text)
  }

  /// What came of an action of the current process, which has ended.
  func tellOutcome(_ text: String, _ error: (any Error)? = nil) {
    onOutcome(currentName)
    tell(text, error)
  }

  /// For a person only: names of files have tags that no seed decides.
  func note(_ text: String) {
    story.append("\(disk.clock / 1_000_000 % 1_000_000_000) \(current?.process.name ?? "world"): \(text)")
  }

  func blame(_ text: String) {
    tell("PROBLEM: \(text)")
    problems.append(text)
  }

  var isCurrentDead: Bool { current?.process.isDead ?? false }
  var currentName: String { current?.process.name ?? "" }

  // MARK: processes

  /// Adds a process that does `body`, and begins with it when ``run()`` lets it.
  func start(_ name: String, on host: Int = 1, _ fates: [Fate] = [], _ body: @escaping (Process, System) -> Void) {
    started += 1
    if !isEnding { cast.append((started, name)) }
    if !isEnding, omitted.processes.contains(started) { return }
    let process = Process(started, name, on: host)
    if !omitted.fates.contains(started) { process.fates = fates }
    begin(process, body)
  }

  /// Adds a program that a process has started. It lives on when that dies.
  func startChild(_ name: String, of parent: Process, _ body: @escaping (Process, System) -> Void) -> Process {
    children += 1
    // Not among those that can be left out.
    let process = Process(100_000 + children, "\(name) \(children)", on: parent.host)
    disk.fork(parent.number, to: process.number)
    begin(process, body)
    return process
  }
  private var children = 0
  /// Starts the programs of the workers; each has its number.
  var programs: SimulatedPrograms?

  private func begin(_ process: Process, _ body: @escaping (Process, System) -> Void) {
    processes.append(process)
    process.began = disk.clock
    let system = System(kernel: SimulatedKernel(self, process))
    startThread(process) {
      body(process, system)
      // Its other threads end with it.
      process.isDead = true
      self.disk.closeAll(of: process.number)
      self.inotify.closeAll(of: process)
    }
  }

  /// Adds a thread to a process.
  func startThread(_ process: Process, _ body: @escaping () -> Void) {
    let thread = SimulatedThread(process)
    threads.append(thread)
    let host = SimulatedHost(self, process, ahead: process.host == 1 ? 0 : skew)
    beginThread {
      thread.turn.wait()
      Host.$current.withValue(host, operation: body)
    } atEnd: {
      self.threads.removeAll { $0 === thread }
      self.goOn()
    }
  }

  /// Runs all processes to their ends.
  func run() {
    wasCut = false
    goOn()
    allEnded.wait()
    precondition(threads.isEmpty)
    processes = []
    current = nil
  }

  /// All processes die, and the disk loses some of what was not made durable.
  func cutPower() {
    tell("POWER CUT")
    onDeath(nil)
    for process in processes { process.isDead = true }
    disk.cutPower(&generator)
    boots += 1
    wasCut = true
  }

  /// Hosts do not see each other's locks, as on sshfs, or NFS with `local_lock`.
  func hideLocks() {
    disk.hostOfLocks = { [unowned self] number in processes.first { $0.number == number }?.host ?? 1 }
  }

  /// The wall clock of a spool's only host is set, or the host sleeps.
  func jump(seconds: Int, asleep isAsleep: Bool) {
    let time = Int64(seconds) * 1_000_000_000
    if isAsleep { (disk.clock, asleep) = (disk.clock + time, asleep + time) } else { disk.ahead += time }
    jumpedAt = disk.clock
    tell(isAsleep ? "SLEPT \(seconds) s" : "THE CLOCK IS SET by \(seconds) s")
  }
  private(set) var jumpedAt = Int64.min / 2
  fileprivate private(set) var asleep: Int64 = 0

  private func goOn() {
    guard let next = next() else {
      allEnded.signal()
      return
    }
    current = next
    next.turn.signal()
  }

  private func next() -> SimulatedThread? {
    if threads.isEmpty { return nil }
    // Those that are dead still have to end, one after the other: one of their threads may wait for another.
    if let dead = threads.firstIndex(where: \.process.isDead) {
      let thread = threads.remove(at: dead)
      threads.append(thread)
      return thread
    }
    let ready = threads.filter { $0.readyAt <= disk.clock }
    if !ready.isEmpty { return pick(ready) }
    let first = threads.map(\.readyAt).min()!
    if first == .max { print(story.suffix(100).joined(separator: "\n")) }
    precondition(first < .max, "all wait for each other")
    disk.clock = first
    return threads.first { $0.readyAt <= disk.clock }
  }

  private func letOthersRun() {
    guard let thread = current, let next = next(), next !== thread else { return }
    current = next
    next.turn.signal()
    thread.turn.wait()
  }

  /// Before a call.
  /// - Returns: the error that it has; 0 for none.
  func step(_ process: Process, isChange: Bool, _ kind: Fate.Kind = .any) -> Int32 {
    if process.isDead {
      process.countGhostCall()
      return EIO
    }
    calls += 1
    disk.clock += Int64(random(5_000...300_000))
    if isChance(1, in: rest) { letOthersRun() }
    if isChance(1, in: callsToWait) { wait(process, milliseconds: pick([1, 20, 200])) }
    if process.isDead { return EIO }
    let error = meetFate(process, isChange, kind)
    return process.isDead ? EIO : error
  }

  private func meetFate(_ process: Process, _ isChange: Bool, _ kind: Fate.Kind) -> Int32 {
    for index in process.fates.indices where process.fates[index].kind == .any || process.fates[index].kind == kind {
      process.fates[index].calls -= 1
    }
    process.looks = max(0, process.looks - 1)
    guard let index = process.fates.firstIndex(where: { $0.calls <= 0 }) else { return 0 }
    let blow = process.fates.remove(at: index).blow
    switch blow {
    case .death: kill(process)
    case .powerCut: cutPower()
    case .freeze where process.isReplacing || process.isTaking || process.looks > 0:
      process.fates.append(Fate(blow, after: 1))
    case .freeze(let seconds):
      tell("FROZEN for \(seconds) s")
      process.hadTrouble = true
      process.frozenUntil = disk.clock + Int64(seconds) * 1_000_000_000
      letOthersRun()
      tell("goes on")
    case .failure(let errno), .lastFailure(let errno):
      guard isChange else { return 0 }
      // What it was about to say of a failed flush makes the difference.
      if case .lastFailure = blow { process.fates.append(Fate(.death, after: random(1...(kind == .sync ? 4 : 20)))) }
      tell("ERROR \(errno)")
      process.hadTrouble = true
      return errno
    }
    return 0
  }

  /// Those that live and have such a name.
  func living(_ prefix: String) -> [Process] { processes.filter { !$0.isDead && $0.name.hasPrefix(prefix) } }

  func kill(_ process: Process) {
    tell("KILLED \(process.name)")
    onDeath(process)
    process.isDead = true
    disk.closeAll(of: process.number)
  }

  /// The current thread of `process` waits, until somebody wakes it at the latest.
  func wait(_ process: Process, milliseconds: Int) {
    guard !process.isDead else {
      process.countGhostCall()
      process.ghostTime += Int64(max(1, milliseconds)) * 1_000_000
      return letOthersRun()
    }
    guard let thread = current else { return }
    thread.wakes = disk.clock + Int64(milliseconds) * 1_000_000
    letOthersRun()
  }

  /// The thread that runs now.
  var thread: SimulatedThread? { current }

  func wake(_ thread: SimulatedThread?) { thread?.wakes = 0 }

  /// Nanoseconds since the epoch, as this process sees them.
  func time(of process: Process) -> Int64 { disk.clock + process.ghostTime }
}

extension SimulatedThread {
  fileprivate var readyAt: Int64 { max(wakes, process.frozenUntil) }
}

/// The host of a simulated process.
final class SimulatedHost: Host, @unchecked Sendable {
  let world: World
  let process: Process
  private let ahead: Int64

  init(_ world: World, _ process: Process, ahead: Int64) {
    (self.world, self.process, self.ahead) = (world, process, ahead)
  }

  override func now() -> Int64 { (world.time(of: process) + world.disk.ahead) / 1_000_000_000 + ahead }
  override func wallMilliseconds() -> Int64 { (world.time(of: process) + world.disk.ahead) / 1_000_000 + ahead * 1000 }
  override func milliseconds() -> Int64 { world.time(of: process) / 1_000_000 - 1_700_000_000_000 }
  override func awakeMilliseconds() -> Int64 { milliseconds() - world.asleep / 1_000_000 }
  override func wait(milliseconds: Int) { world.wait(process, milliseconds: milliseconds) }
  override var takesTurns: Bool { true }
  /// In the end nothing is to be late.
  override func runOnThread(_ body: @escaping @Sendable () -> Void) {
    if world.isEnding { body() } else { world.startThread(process, body) }
  }
  override func random() -> UInt64 { world.generator.next() }
}

/// - Parameter atEnd: is called when all that `body` had is released: what is released may call the kernel.
private func beginThread(_ body: @escaping () -> Void, atEnd: @escaping () -> Void) {
  final class Box {
    private var body: (() -> Void)?
    let atEnd: () -> Void

    init(_ body: @escaping () -> Void, _ atEnd: @escaping () -> Void) { (self.body, self.atEnd) = (body, atEnd) }

    func run() {
      body?()
      body = nil
      atEnd()
    }
  }
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { box in
      Unmanaged<Box>.fromOpaque(box!).takeRetainedValue().run()
      return nil
    }, Unmanaged.passRetained(Box(body, atEnd)).toOpaque())
  precondition(code == 0, "no thread")
  pthread_detach(thread)
}
