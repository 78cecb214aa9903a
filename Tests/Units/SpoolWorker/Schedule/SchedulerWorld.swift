import Testing

@testable import Spool
@testable import SpoolWorker

extension Scheduler {
  /// The job that starts next.
  mutating func choice(at now: Int64) throws -> Choice {
    let step = nextStep(at: now)
    guard case .start(let choice) = step else { throw Unexpected("\(String(describing: step)) instead of a start") }
    return choice
  }
}

/// A spool in memory, a worker that does what the scheduler says, and a clock. Its jobs are named `HOST-NUMBER`, or
/// `HOST-NUMBER-KIND`: `urgent` for one in `urgent/`, else a priority. The number is also the time of the drop.
struct SchedulerWorld {
  var scheduler: Scheduler
  var now: Int64 = 1000
  /// What is in `new/` and in `urgent/`.
  var jobs: Set<String> = []
  /// Names that the pass under way has still to read.
  var unread: [Directory: [String]] = [:]
  var running: [UInt64: String] = [:]
  var started: [String] = []
  /// Running jobs that were put back.
  var parked: [String] = []
  /// How many times a job's text was read.
  var looks = 0
  private var nextID: UInt64 = 1
  /// How many outputs the jobs share; nil where each has its own.
  var outputs: Int?
  /// Jobs with smaller numbers have waited for a day.
  var agedBefore = 0
  /// Called before a job starts.
  var willStart: (SchedulerWorld, String) -> Void = { _, _ in }

  init(jobs: Int, perHost: Int) {
    scheduler = Scheduler(TransferLimits(jobs: jobs, perHost: perHost, commits: 200))
  }

  // MARK: jobs by their names

  private static func part(_ name: String, _ index: Int) -> String? {
    let parts = name.split(separator: "-")
    return index < parts.count ? String(parts[index]) : nil
  }

  static func number(_ name: String) -> Int { part(name, 1).flatMap { Int($0) } ?? 0 }

  static func priority(_ name: String) -> Priority {
    let kind = part(name, 2) ?? "normal"
    return kind == "urgent" ? .high : Priority(rawValue: kind) ?? .normal
  }

  private static func directory(_ name: String) -> Directory { part(name, 2) == "urgent" ? .urgent : .new }

  func output(_ name: String) -> String { outputs.map { "\(Self.number(name) % $0)" } ?? name }

  private func peek(_ name: String) -> Peek {
    Peek(
      host: Self.part(name, 0), output: output(name).exact, priority: Self.priority(name),
      isAged: Self.number(name) < agedBefore)
  }

  private func candidate(_ name: String) -> Candidate {
    Candidate(name: FileName(name), origin: Self.directory(name), modified: Int64(Self.number(name)))
  }

  func count(of host: String) -> Int { running.values.count { $0.hasPrefix(host + "-") } }
  func count(of priority: Priority) -> Int { running.values.count { Self.priority($0) == priority } }

  // MARK: a worker

  private mutating func read(_ count: Int, urgent: Bool = false) -> [Candidate] {
    var found: [Candidate] = []
    while found.count < count, let directory = scheduler.passes.next(urgent: urgent) {
      guard let name = unread[directory]?.popLast() else {
        scheduler.passes.ended(directory)
        continue
      }
      // One that was claimed meanwhile is gone.
      if jobs.contains(name) { found.append(candidate(name)) }
    }
    return found
  }

  mutating func turn() {
    scheduler.beginTurn()
    while let reading = scheduler.nextReading() {
      switch reading {
      case .begin(let directories):
        for directory in directories { unread[directory] = jobs.filter { Self.directory($0) == directory }.shuffled() }
        scheduler.began(directories, at: now)
      case .read(let urgent): scheduler.found(read(PrioritisedBacklog.piece, urgent: urgent), took: 1)
      }
    }
    while let step = scheduler.nextStep(at: now) {
      switch step {
      case .look(let candidate):
        looks += 1
        scheduler.backlog.add(candidate, peek(candidate.name.display))
      case .search(let count):
        let kept = read(count).map { ($0, peek($0.name.display)) }.filter {
          scheduler.keepOrPassOver($0.1, at: now)
        }
        scheduler.searched(kept, from: now, to: now + 1)
      case .start(let choice): start(choice)
      case .park(let id): park(id)
      }
    }
  }

  private mutating func start(_ choice: Choice) {
    let name = choice.candidate.name.display
    guard jobs.contains(name) else { return }
    willStart(self, name)
    jobs.remove(name)
    started.append(name)
    running[nextID] = name
    scheduler.started(nextID, choice)
    nextID += 1
  }

  /// Puts the job back, as one that was dropped.
  private mutating func park(_ id: UInt64) {
    guard let name = running[id] else { return }
    parked.append(name)
    end(id)
    drop(name)
  }

  mutating func end(_ id: UInt64) {
    running[id] = nil
    scheduler.ended(id)
  }

  /// Drops a job while a worker watches.
  mutating func drop(_ name: String) {
    jobs.insert(name)
    let candidate = candidate(name)
    if scheduler.backlog.isFull(for: candidate.origin) {
      scheduler.backlog.passOver(candidate.origin == .urgent ? .high : .normal)
    } else {
      scheduler.backlog.append(candidate)
    }
  }

  mutating func passIfDue() {
    let isStale = !scheduler.isFresh
    if scheduler.isPassDue(at: now) || scheduler.wantsPass(at: now, isStale: isStale) {
      scheduler.requestPeriodicPass(at: now)
    }
  }

  /// Runs to the end by random events.
  mutating func runToEnd(_ check: (inout SchedulerWorld) -> Void) {
    scheduler.requestPass()
    var turns = 0
    while turns < 100_000 {
      turns += 1
      turn()
      check(&self)
      if running.isEmpty, scheduler.isSettled { break }
      for id in running.keys.shuffled().prefix(Int.random(in: 0...2)) { end(id) }
      now += Int64.random(in: 1...500)
      passIfDue()
    }
    #expect(turns < 100_000, "it does not end")
  }
}
