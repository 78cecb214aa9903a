internal import Glibc
internal import SystemPackage

/// What a person does to jobs with `mv`, `touch` and `rm` (spool.5, Steering).
package enum Gesture: String, CaseIterable, Sendable {
  case hold, release, retry, cancel
  /// Gives a waiting job another priority.
  case high, normal, low

  /// The gesture's command.
  package var command: String {
    switch self {
    case .hold, .release, .retry, .cancel: rawValue
    case .high, .normal, .low: "prioritise"
    }
  }

  /// The directories whose jobs and standing orders it applies to.
  package var sources: [Directory] {
    switch self {
    case .hold: [.new, .urgent, .cur, .partial, .standing]
    case .release: [.hold]
    case .retry: [.partial, .failed, .standing]
    case .cancel: [.new, .urgent, .cur, .partial, .hold, .failed, .standing]
    case .high: [.new, .partial]
    case .normal, .low: [.new, .urgent, .partial]
    }
  }

  /// Those of them where it may apply to all at once. A standing order is checked or cancelled only by its name.
  package var sourcesOfAll: [Directory] { self == .hold ? sources : sources.filter { $0 != .standing } }

  /// The directories that it takes names from and gives names to.
  package var directories: [Directory] {
    switch self {
    case .hold: sources + [.hold]
    case .release: sources + [.new, .standing]
    case .retry: sources + [.new]
    case .cancel: sources
    case .high: sources + [.urgent]
    case .normal, .low: sources
    }
  }

  /// The directories whose jobs are already as the gesture would make them.
  var settled: [Directory] {
    switch self {
    case .hold: [.hold]
    case .release: [.new, .urgent, .cur, .partial, .standing]
    case .retry: [.new, .urgent, .cur]
    case .cancel, .normal, .low: []
    case .high: [.urgent, .cur]
    }
  }
}

/// What came of a ``Gesture``.
package enum GestureOutcome: Sendable {
  /// Renamed.
  case moved(from: JobPlace, to: JobPlace)
  /// Its next attempt is now.
  case due(JobPlace)
  case removed(JobPlace)
  /// It was already where it should be.
  case unchanged(JobPlace)
  /// Several jobs have the name.
  case ambiguous([JobPlace])
  /// Another job has its name in the target directory.
  case taken(JobPlace, by: JobPlace)
  /// A directory was dropped: a person has to remove it.
  case directory(JobPlace)
  /// There is no job of this name that the gesture applies to; `elsewhere`: one that it does not apply to, such as a
  /// done one.
  case notFound(elsewhere: JobPlace?)
  /// It moved before each try.
  case restless(JobPlace)
}

extension Spool {
  /// How often to look for a job that is not found, and how often to try one that moves.
  private static let looks = 3
  private static let grasps = 50

  /// Does `gesture` to the job `name`, without a claim and without asking a worker. A worker that has the job notices
  /// that its file is gone.
  /// - Parameter directory: of several jobs of one name, the one in this directory.
  /// - Throws: ``SpoolError``.
  package func perform(_ gesture: Gesture, _ name: FileName, in directory: Directory? = nil) throws(SpoolError)
    -> GestureOutcome
  {
    // No name may lead out of the spool's directories.
    guard name.isEntry else { return .notFound(elsewhere: nil) }
    var misses = 0
    var last: JobPlace?
    for _ in 0..<Self.grasps {
      let all = try places(of: name, in: directory.map { [$0] })
      var candidates: [JobPlace] = []
      for place in all where gesture.sources.contains(place.directory) {
        if try isJob(place.name, in: place.directory, for: gesture) { candidates.append(place) }
      }
      guard let place = candidates.first else {
        if let settled = all.first(where: { gesture.settled.contains($0.directory) }) { return .unchanged(settled) }
        misses += 1
        if misses >= Self.looks { return .notFound(elsewhere: all.first) }
        Host.current.wait(milliseconds: 2)
        continue
      }
      if candidates.contains(where: { $0.inode != place.inode }) { return .ambiguous(candidates) }
      last = place
      do throws(SpoolError) {
        if try completeInterruptedMove(at: place) { continue }
        return try perform(gesture, at: place, name)
      } catch  where error.errno == .noSuchFileOrDirectory {
        // It has moved since the look: look again.
        continue
      }
    }
    guard let last else { return .notFound(elsewhere: nil) }
    return .restless(last)
  }

  /// - Throws: ``SpoolError``, ENOENT when the job has moved.
  private func perform(_ gesture: Gesture, at place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    switch (gesture, place.directory) {
    case (.retry, .partial), (.retry, .standing):
      try touch(place)
      return .due(place)
    case (.hold, _): return try move(place, to: .hold, name)
    case (.release, _):
      // The worker that ran it may still write its last line: without the wait, the next claim would find it locked.
      try waitUntilUnlocked(place)
      try sayComplete(place)
      return try move(place, to: home(of: place), name)
    case (.retry, _):
      try sayComplete(place)
      return try move(place, to: home(of: place), name)
    case (.cancel, _): return try remove(place, name)
    case (.high, _): return try makeUrgent(place, name)
    case (.normal, _): return try setPriority(.normal, of: place, name)
    case (.low, _): return try setPriority(.low, of: place, name)
    }
  }

  /// One rename that replaces nothing.
  func move(_ place: JobPlace, to directory: Directory, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    let target = JobPlace(directory: directory, name: name, inode: place.inode)
    return try moving(place, to: target) { () throws(SpoolError) in try moveNoReplace(place.path, target.path) }
  }

  /// What comes of a move that `body` makes.
  func moving(_ place: JobPlace, to target: JobPlace, _ body: () throws(SpoolError) -> Void) throws(SpoolError)
    -> GestureOutcome
  {
    do throws(SpoolError) {
      try body()
      return .moved(from: place, to: target)
    } catch  where error.errno == .fileExists {
      guard let other = try places(of: target.name, in: [target.directory]).first else {
        throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
      }
      return .taken(place, by: other)
    }
  }

  /// The directory as well, for workers of other hosts: they look at its time.
  func touch(_ place: JobPlace) throws(SpoolError) {
    try system.open(root, place.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY).touch()
    if kind.isLocal { return }
    do throws(SpoolError) {
      try system.open(root, Path(place.directory), O_RDONLY | O_DIRECTORY).touch()
    } catch  where [.permissionDenied, .notPermitted].contains(error.errno) {
      // Another user's directory: they find the job with their next pass.
    }
  }

  private func remove(_ place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    do throws(SpoolError) {
      if place.directory == .failed, try status(.failed, name)?.isDirectory == false { try removeRecord(of: name) }
      try system.unlink(root, place.path)
    } catch  where error.errno == .isDirectory {
      return .directory(place)
    }
    // A worker that runs the job removes the data itself, and holds the lock until then.
    if let job = JobName(name) { try removeOrphanedData(of: job) }
    return .removed(place)
  }

  /// Removes the record of what is no job, before the thing itself: after that, a worker may write a record of
  /// something else by this name.
  private func removeRecord(of name: FileName) throws(SpoolError) {
    let record = name.record
    guard record != name, try isRecord(record) else { return }
    // A record's name has only the first bytes of a long name, so several may share it.
    if name.hasLongRecord, try list(.failed).contains(where: { $0 != name && $0 != record && $0.record == record }) {
      return
    }
    do throws(SpoolError) {
      try system.unlink(root, Path(.failed, record))
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }

  /// Waits, 2 s at most, until no process has the job's lock or has it open for writing: in `new/` it would seem
  /// unfinished.
  /// - Returns: false if a process still does, as far as the kernel tells.
  @discardableResult
  func waitUntilUnlocked(_ place: JobPlace) throws(SpoolError) -> Bool {
    try waited { () throws(SpoolError) in try isUnlocked(place) }
  }

  /// Waits, 2 s at most, for what another process has to let go of.
  /// - Returns: whether it came true.
  func waited(for condition: () throws(SpoolError) -> Bool) throws(SpoolError) -> Bool {
    for _ in 0..<100 {
      if try condition() { return true }
      Host.current.wait(milliseconds: 20)
    }
    return false
  }

  private func isUnlocked(_ place: JobPlace) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      guard try self.status(place.directory, place.name)?.isRegular ?? false else { return true }
      var file = try system.open(root, place.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      return try file.lock() && (kind.leases == .granted || file.askLease() != .refused)
    } catch  where error.isLeased {
      return false
    } catch  where error.errno == .permissionDenied {
      return true
    }
  }

  /// Whether it is a job: data and records are in the same directories.
  private func isJob(_ name: FileName, in directory: Directory, for gesture: Gesture) throws(SpoolError) -> Bool {
    switch (directory, gesture) {
    case (.partial, .retry):
      // A symbolic link, for example, waits for no attempt, and cannot be opened.
      guard !name.isData else { return false }
      return try status(.partial, name)?.isRegular ?? false
    case (_, .normal), (_, .low):
      guard !name.isData, let status = try status(directory, name) else { return false }
      return status.isRegular && status.size <= Self.maximumJobFile
    case (.partial, _): return !name.isData
    case (.failed, .retry):
      // A thing that is no regular file would be rejected again.
      guard JobName(name) != nil, try status(.failed, name)?.isRegular ?? false else { return false }
      return try !isRecord(name)
    default: return true
    }
  }

  /// The jobs that `gesture` applies to, by name, with the directory that each was found in.
  /// - Parameter directories: which of ``Gesture/sources`` to look in.
  /// - Throws: ``SpoolError``.
  package func jobs(for gesture: Gesture, in directories: [Directory]) throws(SpoolError) -> [(
    name: FileName, directory: Directory
  )] {
    var jobs: [(FileName, Directory)] = []
    for directory in directories {
      let names = try list(directory)
      switch directory {
      case .cur:
        for name in names {
          guard let claim = ClaimName(name) else { continue }
          if gesture == .cancel, try isStandingOrder(.cur, name) { continue }
          jobs.append((claim.job.fileName, .cur))
        }
      case .failed where gesture == .cancel:
        let dropped = try leftovers(in: names)
        for name in names where !dropped.contains(name) {
          if try !isStandingOrder(.failed, name) { jobs.append((name, .failed)) }
        }
      case .failed, .partial:
        for name in names where JobName(name) != nil {
          if try isJob(name, in: directory, for: gesture) { jobs.append((name, directory)) }
        }
      case .hold where gesture == .cancel:
        for name in names where JobName(name) != nil {
          if try !isStandingOrder(.hold, name) { jobs.append((name, .hold)) }
        }
      default: jobs += names.filter { JobName($0) != nil }.map { ($0, directory) }
      }
    }
    return jobs
  }
}
