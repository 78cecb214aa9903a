internal import Spool

/// Reads the spool as the ``Scheduler`` requests it, and reports what it finds.
@WorkerLoop struct Lookout {
  private let peeks: PeekReader
  private let only: Set<FileName>?
  private var reader: SpoolReader
  private let spool: Spool
  private let servers: Servers
  /// When `urgent/` was last looked at, in milliseconds, and its time of modification then.
  private var urgent: (lookedAt: Int64, modified: Int64?) = (0, nil)
  /// What was seen of the directories where jobs and standing orders appear that may run. A touched file changes no
  /// directory: `spoolrun retry` touches the directory as well, and a pass finds what a person touches.
  private var changes: [Directory: DirectoryChange] = [:]
  /// When the clock of the file system is to be read again, in milliseconds.
  private var nextClock: Int64 = 0

  init(_ spool: Spool, _ environment: JobEnvironment, _ claims: ClaimReader) {
    peeks = PeekReader(spool, environment, claims)
    only = environment.options.only
    servers = environment.servers
    self.spool = spool
    reader = SpoolReader(spool)
  }

  mutating func perform(_ reading: Scheduler.Reading, _ scheduler: inout Scheduler) throws(SpoolError) {
    let began = LoopExecutor.milliseconds()
    switch reading {
    case .begin(let directories):
      try learnClock(at: began)
      for directory in directories { try reader.begin(directory) }
      scheduler.began(directories, at: began)
    case .read(let urgent):
      let found = try read(PrioritisedBacklog.piece, &scheduler, urgent: urgent)
      scheduler.found(found, took: LoopExecutor.milliseconds() - began)
    }
  }

  /// Once a minute, because clocks are set and hosts sleep, and when this host's was.
  private mutating func learnClock(at now: Int64) throws(SpoolError) {
    guard now >= nextClock || spool.clockSetAt > nextClock - Rescan.standardInterval else { return }
    do throws(SpoolError) {
      try spool.learnClock()
      nextClock = now + Rescan.standardInterval
    } catch  where error.isLackOfSpace {
      // It is read with the next pass. Until then it is what it was.
    }
  }

  func look(at candidate: Candidate, _ scheduler: inout Scheduler) throws(SpoolError) {
    if let peek = try peek(at: candidate, &scheduler) { scheduler.backlog.add(candidate, peek) }
  }

  /// - Returns: nil for a claim that cannot be read yet. It is looked at again in a moment.
  private func peek(at candidate: Candidate, _ scheduler: inout Scheduler) throws(SpoolError) -> Peek? {
    let peek = try peeks.peek(at: candidate)
    if peek == nil { scheduler.hold(candidate, until: spool.now().seconds + ClaimReader.pause) }
    return peek
  }

  func look(at candidate: Candidate, _ text: JobText, _ scheduler: inout Scheduler) throws(SpoolError) {
    scheduler.backlog.add(candidate, try peeks.peek(candidate, text))
  }

  mutating func search(_ count: Int, _ scheduler: inout Scheduler) throws(SpoolError) {
    let start = LoopExecutor.milliseconds()
    var kept: [(Candidate, Peek)] = []
    for candidate in try read(count, &scheduler).sorted(by: { $0.isBefore($1) }) {
      guard let peek = try peek(at: candidate, &scheduler) else { continue }
      if scheduler.keepOrPassOver(peek, at: start, servers.rests) { kept.append((candidate, peek)) }
    }
    scheduler.searched(kept, from: start, to: LoopExecutor.milliseconds())
  }

  /// Adds jobs of high priority that have become due, and requests a pass over `urgent/` if it has just changed:
  /// inotify may be blind, and is not used with `--once`.
  mutating func lookForUrgent(_ scheduler: inout Scheduler) throws(SpoolError) {
    scheduler.addDue(at: spool.now().seconds)
    let now = LoopExecutor.milliseconds()
    // While some are in hand, a pass reads all of them again.
    let interval = scheduler.backlog.isUrgent ? 4 * Self.urgentInterval : Self.urgentInterval
    guard now - urgent.lookedAt >= interval else { return }
    let modified = try spool.modified(.urgent)
    // Two changes within a second cannot be told apart.
    let isNew = modified != urgent.modified || modified.map { $0 >= spool.now().seconds - 1 } ?? false
    if isNew { scheduler.passes.request([.urgent]) }
    urgent = (now, modified)
  }

  /// Whether a directory that jobs appear in may have changed since the last call.
  mutating func seesChanges(at now: Int64) throws(SpoolError) -> Bool {
    var isChanged = false
    for directory in [Directory.new, .urgent, .partial, .standing] {
      let stamp = try spool.stamp(of: directory)
      if changes[directory, default: DirectoryChange()].note(stamp, at: now) { isChanged = true }
    }
    return isChanged
  }

  /// In milliseconds.
  private static let urgentInterval: Int64 = 250

  /// Handles the changes that inotify reported. A name that has been claimed meanwhile costs one failed claim.
  func take(_ changes: [SpoolWatch.Change], _ scheduler: inout Scheduler) throws(SpoolError) {
    var seen: Set<SpoolWatch.Change> = []
    let now = spool.now()
    for change in changes where change.directory != .cur && !change.name.isIgnored && seen.insert(change).inserted {
      let isFull = scheduler.backlog.isFull(for: change.directory)
      let mayLook = seen.count <= Self.mostEarlyLooks
      if isFull, !mayLook || change.directory == .urgent {
        scheduler.backlog.passOver(change.directory == .urgent ? .high : .normal)
        continue
      }
      guard let candidate = try look(change.directory, change.name, now, &scheduler) else { continue }
      // Behind others that have not been looked at, one of high priority would wait for them.
      if mayLook, change.directory != .urgent, isFull || scheduler.backlog.hasUnread {
        guard let peek = try peek(at: candidate, &scheduler) else { continue }
        if peek.priority == .high {
          scheduler.backlog.add(candidate, peek)
          continue
        }
        if isFull {
          scheduler.backlog.passOver(peek.priority)
          continue
        }
      }
      scheduler.backlog.append(candidate)
    }
  }

  /// How many jobs of those that appear together are looked at at once, because a million may appear.
  private static let mostEarlyLooks = 100

  mutating func abandon(_ scheduler: inout Scheduler) {
    scheduler.abandonPasses()
    reader.abandon()
    changes = [:]
  }

  /// The candidates among the next `count` names.
  private mutating func read(_ count: Int, _ scheduler: inout Scheduler, urgent: Bool = false) throws(SpoolError)
    -> [Candidate]
  {
    var found: [Candidate] = []
    var names = 0
    let now = spool.now()
    while names < count, let directory = scheduler.passes.next(urgent: urgent) {
      guard let name = try reader.next(directory) else {
        scheduler.passes.ended(directory)
        continue
      }
      names += 1
      if let candidate = try look(directory, name, now, &scheduler) { found.append(candidate) }
    }
    return found
  }

  private func look(_ directory: Directory, _ name: FileName, _ now: Timestamp, _ scheduler: inout Scheduler)
    throws(SpoolError) -> Candidate?
  {
    if let only,
      directory == .standing || !only.contains(directory == .cur ? ClaimName(name)?.job.fileName ?? name : name)
    {
      return nil
    }
    switch try reader.look(directory, name, at: now) {
    case .candidate(let candidate): return candidate
    // In the next second, because the lease may end by a clock that is read once a second.
    case .held(let claim, let end): scheduler.hold(claim, until: end + 1)
    case .later(let time): scheduler.willBeDue(at: time, in: directory)
    case .nothing: break
    }
    return nil
  }
}
