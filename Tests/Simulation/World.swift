import Dispatch
import Glibc
import TestSupport

@testable import Spool

/// A process of the simulated world: a thread that runs only when it is its turn.
final class Process: @unchecked Sendable {
  let number: Int
  let name: String
  let turn = DispatchSemaphore(value: 0)
  var isDead = false
  var hasEnded = false
  /// It does nothing before this time.
  var wakes: Int64 = 0
  /// What happens to it at one of its calls.
  var fates: [Fate] = []

  init(_ number: Int, _ name: String) { (self.number, self.name) = (number, name) }
}

/// What happens to a process at its n-th call from now.
struct Fate {
  enum Blow {
    case death
    /// It is stopped, as by SIGSTOP, for so many seconds.
    case freeze(Int)
    /// The call fails, if it changes something.
    case failure(Int32)
  }

  var calls: Int
  let blow: Blow
}

/// A disk, its clock, and processes of which one runs at a time. A seed decides which one goes on after each call to
/// the kernel, so the same seed plays the same story.
final class World: @unchecked Sendable {
  let disk = SimulatedDisk()
  var generator: SeededGenerator
  private var processes: [Process] = []
  /// No two processes have the same number, and so no two workers the same name.
  private var started = 0
  private var current: Process?
  private let allEnded = DispatchSemaphore(value: 0)
  /// Seconds by which the clocks of other hosts than the first, which has the disk's, are ahead.
  var skew: Int64 = 0
  /// What happened, for a person.
  private(set) var story: [String] = []
  /// Of the story, and the same for the same seed.
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var problems: [String] = []
  private(set) var boots = 1
  /// Whether the power was cut in the last ``run()``.
  private(set) var wasCut = false
  private(set) var calls = 0

  /// A process makes about so many calls before another one's turn.
  private let rest: Int

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    rest = [1, 3, 12].randomElement(using: &generator)!
    disk.onTrace = { [unowned self] in note($0) }
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

  /// For a person only: names of files have tags that no seed decides.
  func note(_ text: String) {
    story.append("\(disk.clock / 1_000_000 % 1_000_000_000) \(current?.name ?? "world"): \(text)")
  }

  func blame(_ text: String) {
    tell("PROBLEM: \(text)")
    problems.append(text)
  }

  var currentName: String { current?.name ?? "" }

  // MARK: processes

  /// Adds a process that does `body`, and begins with it when ``run()`` lets it.
  func start(_ name: String, on host: Int = 1, _ fates: [Fate] = [], _ body: @escaping (Process, System) -> Void) {
    started += 1
    let process = Process(started, name)
    process.fates = fates
    processes.append(process)
    let clock = SimulatedClock(self, process, ahead: host == 1 ? 0 : skew)
    let system = System(kernel: SimulatedKernel(self, process))
    startThread {
      process.turn.wait()
      HostClock.$current.withValue(clock) { body(process, system) }
      process.hasEnded = true
      self.disk.closeAll(of: process.number)
      self.goOn()
    }
  }

  /// Runs all processes to their ends.
  func run() {
    wasCut = false
    goOn()
    allEnded.wait()
    processes = []
    current = nil
  }

  /// All processes die, and the disk loses some of what was not made durable.
  func cutPower() {
    tell("POWER CUT")
    for process in processes { process.isDead = true }
    disk.cutPower(&generator)
    boots += 1
    wasCut = true
  }

  private func goOn() {
    guard let next = next() else {
      allEnded.signal()
      return
    }
    current = next
    next.turn.signal()
  }

  private func next() -> Process? {
    let living = processes.filter { !$0.hasEnded }
    if living.isEmpty { return nil }
    // Those that are dead still have to end.
    if let dead = living.first(where: \.isDead) { return dead }
    let ready = living.filter { $0.wakes <= disk.clock }
    if !ready.isEmpty { return pick(ready) }
    disk.clock = living.map(\.wakes).min()!
    return living.first { $0.wakes <= disk.clock }
  }

  private func letOthersRun(_ process: Process) {
    guard let next = next(), next !== process else { return }
    current = next
    next.turn.signal()
    process.turn.wait()
  }

  /// Before a call.
  /// - Returns: the error that it has; 0 for none.
  func step(_ process: Process, isChange: Bool) -> Int32 {
    if process.isDead { return EIO }
    calls += 1
    disk.clock += Int64(random(5_000...300_000))
    if isChance(1, in: rest) { letOthersRun(process) }
    let error = meetFate(process, isChange)
    return process.isDead ? EIO : error
  }

  private func meetFate(_ process: Process, _ isChange: Bool) -> Int32 {
    for index in process.fates.indices { process.fates[index].calls -= 1 }
    guard let index = process.fates.firstIndex(where: { $0.calls <= 0 }) else { return 0 }
    switch process.fates.remove(at: index).blow {
    case .death: kill(process)
    case .freeze(let seconds):
      tell("FROZEN for \(seconds) s")
      wait(process, milliseconds: seconds * 1000)
      tell("goes on")
    case .failure(let errno):
      guard isChange else { return 0 }
      tell("ERROR \(errno)")
      return errno
    }
    return 0
  }

  func kill(_ process: Process) {
    tell("KILLED \(process.name)")
    process.isDead = true
    disk.closeAll(of: process.number)
  }

  func wait(_ process: Process, milliseconds: Int) {
    if process.isDead { return }
    process.wakes = disk.clock + Int64(milliseconds) * 1_000_000
    letOthersRun(process)
  }
}

struct SimulatedClock: Clock {
  private let world: World
  private let process: Process
  private let ahead: Int64

  init(_ world: World, _ process: Process, ahead: Int64) {
    (self.world, self.process, self.ahead) = (world, process, ahead)
  }

  func now() -> Int64 { world.disk.clock / 1_000_000_000 + ahead }
  func secondsSinceBoot() -> Int64 { world.disk.clock / 1_000_000_000 - 1_700_000_000 }
  func wait(milliseconds: Int) { world.wait(process, milliseconds: milliseconds) }
}

private func startThread(_ body: @escaping () -> Void) {
  final class Box { let body: () -> Void; init(_ body: @escaping () -> Void) { self.body = body } }
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { box in
      Unmanaged<Box>.fromOpaque(box!).takeRetainedValue().body()
      return nil
    }, Unmanaged.passRetained(Box(body)).toOpaque())
  precondition(code == 0, "no thread")
  pthread_detach(thread)
}
