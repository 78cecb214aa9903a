internal import Glibc
internal import SystemPackage

/// What a person does to jobs with `mv`, `touch` and `rm` (spool.5, Steering).
package enum Gesture: String, CaseIterable, Sendable {
  case hold, release, retry, cancel
  /// Gives a waiting job another priority.
  case high, normal, low

  package var command: String {
    switch self {
    case .hold, .release, .retry, .cancel: rawValue
    case .high, .normal, .low: "prioritise"
    }
  }

  /// The directories that it takes names from, those that it gives other names to, and those whose jobs are already as
  /// it would make them.
  private var row: (sources: [Directory], targets: [Directory], settled: [Directory]) {
    switch self {
    case .hold: ([.new, .urgent, .cur, .partial, .standing], [.hold], [.hold])
    case .release: ([.hold], [.new, .standing], [.new, .urgent, .cur, .partial, .standing])
    case .retry: ([.partial, .failed, .standing], [.new], [.new, .urgent, .cur])
    case .cancel: ([.new, .urgent, .cur, .partial, .hold, .failed, .standing], [], [])
    case .high: ([.new, .partial], [.urgent], [.urgent, .cur])
    case .normal, .low: ([.new, .urgent, .partial], [], [])
    }
  }

  /// The directories whose jobs and standing orders it applies to.
  package var sources: [Directory] { row.sources }

  /// Those of them where it may apply to all at once. A standing order is checked or cancelled only by its name.
  package var sourcesOfAll: [Directory] { self == .hold ? sources : sources.filter { $0 != .standing } }

  /// The directories that it takes names from and gives names to.
  package var directories: [Directory] { row.sources + row.targets }

  fileprivate var settled: [Directory] { row.settled }
}

package enum GestureOutcome: Sendable {
  case moved(from: JobPlace, to: JobPlace)
  case due(JobPlace)
  case removed(JobPlace)
  case unchanged(JobPlace)
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

/// What a person does to jobs by commands: moves that ask no worker.
package struct Steering {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// How often to look for a job that is not found, and how often to try one that moves.
  private static let looks = 3
  private static let grasps = 50

  /// Does `gesture` to the job `name`, without a claim and without asking a worker. A worker that has the job notices
  /// that its file is gone.
  /// - Parameter directory: of several jobs of one name, the one in this directory.
  /// - Parameter inode: of several jobs of one name, the one that is this file.
  /// - Parameter leavesData: whether the caller removes the data of cancelled jobs, of many at a time.
  package func perform(
    _ gesture: Gesture, _ name: FileName, in directory: Directory? = nil, inode: UInt64? = nil,
    leavesData: Bool = false
  ) throws(SpoolError) -> GestureOutcome {
    // No name may lead out of the spool's directories.
    guard name.isEntry else { return .notFound(elsewhere: nil) }
    try removeTouched(name)
    var misses = 0
    var last: JobPlace?
    for _ in 0..<Self.grasps {
      let all = try JobSearch(spool).places(of: name, in: directory.map { [$0] })
        .filter { inode == nil || $0.inode == inode }
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
        if try JobMoves(spool).completeInterruptedMove(at: place) { continue }
        let outcome = try perform(gesture, at: place, name)
        // A worker that runs the job removes the data itself, and holds the lock until then.
        if case .removed = outcome, !leavesData, let job = JobName(name) {
          try JobData(spool).removeOrphanedData(of: [job])
        }
        return outcome
      } catch  where error.errno == .noSuchFileOrDirectory {
        // It has moved since the look: look again.
        continue
      }
    }
    guard let last else { return .notFound(elsewhere: nil) }
    return .restless(last)
  }

  /// Removes the empty file that touch(1) has made where a job that runs would wait: it is no second job of the name.
  func removeTouched(_ name: FileName) throws(SpoolError) {
    for directory in [Directory.partial, .standing] where try spool.status(directory, name)?.size == 0 {
      guard try !JobSearch(spool).places(of: name, in: [.cur]).isEmpty else { continue }
      _ = try JobMoves(spool).removeTouched(Path(directory, name), in: directory)
    }
  }

  /// - Throws: ``SpoolError``, ENOENT when the job has moved.
  private func perform(_ gesture: Gesture, at place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    switch (gesture, place.directory) {
    case (.retry, .partial), (.retry, .standing):
      try JobEditor(spool).touch(place)
      return .due(place)
    case (.hold, .cur):
      let outcome = try move(place, to: .hold, name)
      guard case .moved(let from, let held) = outcome else { return outcome }
      return .moved(from: from, to: try JobEditor(spool).renewLeft(held))
    case (.hold, _): return try move(place, to: .hold, name)
    case (.release, _):
      // The worker that ran it may still write its last line: without the wait, the next claim would find it locked.
      let place = try JobEditor(spool).freed(place)
      try JobEditor(spool).sayComplete(place)
      return try move(place, to: home(of: place), name)
    case (.retry, _):
      try JobEditor(spool).sayComplete(place)
      return try move(place, to: home(of: place), name)
    case (.cancel, _): return try remove(place)
    case (.high, _): return try makeUrgent(place, name)
    case (.normal, _): return try setPriority(.normal, of: place, name)
    case (.low, _): return try setPriority(.low, of: place, name)
    }
  }

  /// One rename that replaces nothing.
  func move(_ place: JobPlace, to directory: Directory, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    let target = JobPlace(directory: directory, name: name, inode: place.inode)
    if try spool.status(directory, name) == nil { try removeRecord(beside: place) }
    return try moving(place, to: target) { () throws(SpoolError) in try spool.moveNoReplace(place.path, target.path) }
  }

  func moving(_ place: JobPlace, to target: JobPlace, _ body: () throws(SpoolError) -> Void) throws(SpoolError)
    -> GestureOutcome
  {
    do throws(SpoolError) {
      try body()
      return .moved(from: place, to: target)
    } catch  where error.errno == .fileExists {
      guard let other = try JobSearch(spool).places(of: target.name, in: [target.directory]).first else {
        throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
      }
      return .taken(place, by: other)
    }
  }

  private func remove(_ place: JobPlace) throws(SpoolError) -> GestureOutcome {
    let file = try spool.system.status(spool.root, place.path)
    let hasMoved = SpoolError(call: .unlink, path: place.display, errno: .noSuchFileOrDirectory)
    guard file.inode == place.inode else { throw hasMoved }
    if file.isDirectory { return .directory(place) }
    try removeRecord(beside: place)
    // A worker may take it at this moment.
    guard try spool.remove(place.path, of: file) else { throw hasMoved }
    return .removed(place)
  }

  /// Removes the record of what is no job before it leaves `failed/`: after that, a worker may write a record of
  /// something else by this name.
  func removeRecord(beside place: JobPlace) throws(SpoolError) {
    let (name, record) = (place.name, place.name.record)
    guard place.directory == .failed, record != name, try JobSearch(spool).isRecord(record) else { return }
    // A record's name has only the first bytes of a long name, so several may share it.
    if name.hasLongRecord,
      try spool.list(.failed).contains(where: { $0 != name && $0 != record && $0.record == record })
    {
      return
    }
    try spool.system.unlinkIfPresent(spool.root, Path(.failed, record))
  }

  /// Whether it is a job: data and records are in the same directories.
  private func isJob(_ name: FileName, in directory: Directory, for gesture: Gesture) throws(SpoolError) -> Bool {
    switch (directory, gesture) {
    case (.partial, .retry):
      // A symbolic link, for example, waits for no attempt, and cannot be opened.
      guard !name.isData else { return false }
      return try spool.status(.partial, name)?.isRegular ?? false
    case (_, .normal), (_, .low):
      guard !name.isData, let status = try spool.status(directory, name) else { return false }
      return status.isRegular && status.size <= Spool.maximumJobFile
    case (.partial, _): return !name.isData
    case (.failed, .retry):
      // A thing that is no regular file would be rejected again.
      guard JobName(name) != nil, try spool.status(.failed, name)?.isRegular ?? false else { return false }
      return try !JobSearch(spool).isRecord(name)
    default: return true
    }
  }

  /// - Parameter directories: which of ``Gesture/sources`` to look in.
  package func jobs(for gesture: Gesture, in directories: [Directory]) throws(SpoolError) -> [(
    name: FileName, directory: Directory
  )] {
    var jobs: [(FileName, Directory)] = []
    for directory in directories {
      let names = try spool.list(directory)
      switch directory {
      case .cur:
        for name in names {
          guard let claim = ClaimName(name) else { continue }
          if gesture == .cancel, try JobSearch(spool).isStandingOrder(.cur, name) { continue }
          jobs.append((claim.job.fileName, .cur))
        }
      case .failed where gesture == .cancel:
        let dropped = try JobSearch(spool).leftovers(in: names)
        for name in names where !dropped.contains(name) {
          if try !JobSearch(spool).isStandingOrder(.failed, name) { jobs.append((name, .failed)) }
        }
      case .failed, .partial:
        for name in names where JobName(name) != nil {
          if try isJob(name, in: directory, for: gesture) { jobs.append((name, directory)) }
        }
      case .hold where gesture == .cancel:
        for name in names where JobName(name) != nil {
          if try !JobSearch(spool).isStandingOrder(.hold, name) { jobs.append((name, .hold)) }
        }
      default: jobs += names.filter { JobName($0) != nil }.map { ($0, directory) }
      }
    }
    return jobs
  }

  /// Where a file goes when it is to be worked on again.
  func home(of place: JobPlace) throws(SpoolError) -> Directory {
    guard try JobSearch(spool).isStandingOrder(place.directory, place.name) else { return .new }
    try spool.provide(Path(.standing))
    return .standing
  }

  /// Puts a job into `new` again, from any directory, as a person would. It keeps its journal and its data.
  /// - Parameter request: what it asks for from now on; nil for what it asked for before.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name.
  package func requeue(_ place: JobPlace, as job: JobName, asking request: String? = nil) throws(SpoolError) {
    try removeRecord(beside: place)
    // In `done`, a receipt under another request would promise what nobody has verified.
    let isMovedFirst = request == nil || place.directory == .done
    var place = place
    if isMovedFirst, place.path != Path(.new, job.fileName) {
      place = try JobEditor(spool).freed(place)
      if request == nil { try JobEditor(spool).sayComplete(place) }
      let target = JobPlace(directory: .new, name: job.fileName, inode: place.inode)
      try spool.moveNoReplace(place.path, target.path)
      place = target
    }
    guard let request else { return }
    _ = try JobEditor(spool).edit(place, to: .new) { old in
      beginningAgain(request, JobLines.happened(of: old) { $0.journal != nil })
    }
  }
}

/// Getting a payload again that is no longer what its receipt says.
extension Steering {
  /// Puts a done job into `new` again, with what its receipt says of the payload, and leave to replace it. The file
  /// that is there stays until the right one is verified.
  /// - Parameter receipt: in `done`, or archived.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name.
  package func refetch(_ receipt: Path, _ name: FileName, _ verified: Journal.Verified) throws(SpoolError) {
    let done = Path(.done, name)
    if receipt != done { try spool.moveNoReplace(receipt, done) }
    try refetch(
      JobPlace(directory: .done, name: name, inode: try spool.system.status(spool.root, done).inode), verified)
  }

  /// The same for a job in any directory.
  package func refetch(_ place: JobPlace, _ verified: Journal.Verified) throws(SpoolError) {
    try removeRecord(beside: place)
    _ = try JobEditor(spool).edit(place, to: .new) { old in
      var request = JobRequest()
      (request.overwrite, request.expected.size, request.expected.digests) = (true, verified.size, verified.digests)
      let keys = Set(DigestAlgorithm.allCases.map(\.rawValue) + [JobKey.size.name, "overwrite", "expires"])
      return beginningAgain(request.text, JobLines.happened(of: old) { !$0.sets(keys) })
    }
  }

  /// The text of a job that goes to `new/` by way of `cur/`. A power cut may leave it there, where its receipt would
  /// count, so the line is not left to the next claim.
  private func beginningAgain(_ request: String, _ rest: [UInt8]) -> [UInt8] {
    let isFirst = rest.isEmpty || rest.withUnsafeBytes { JobText($0) }.journal.isEmpty
    return Array(request.utf8) + rest + Array((isFirst ? "" : JournalLine.requeued(spool.now()).text).utf8)
  }
}

/// Giving a job that waits another priority.
extension Steering {
  /// Moves a waiting job to `urgent/`.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  private func makeUrgent(_ place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    try spool.provide(Path(.urgent))
    try JobEditor(spool).sayComplete(place)
    return try move(place, to: .urgent, name)
  }

  /// Writes the priority into a job's text. It keeps its times: in `new/` its age, in `partial/` its next attempt. A
  /// job in `urgent/` goes to `new/`.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  private func setPriority(_ priority: Priority, of place: JobPlace, _ name: FileName) throws(SpoolError)
    -> GestureOutcome
  {
    let target = JobPlace(
      directory: place.directory == .urgent ? .new : place.directory, name: name, inode: place.inode)
    guard let modified = try spool.status(place.directory, place.name)?.modified else {
      throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
    }
    return try moving(place, to: target) { () throws(SpoolError) in
      _ = try JobEditor(spool).edit(place, to: target.directory, modified: modified) {
        JobText.settingPriority(priority, in: $0)
      }
    }
  }
}
