internal import Synchronization
internal import SystemPackage

extension JobSearch {
  /// How many names are tried before there is thought to be another reason why none is free.
  static let mostTries = 110

  /// The number for the `attempt`-th name: 2, 3, … and after the hundredth a random one. Without it, a person who drops
  /// one name over and over could make each move look through all that came of it, and end the worker with the last
  /// number.
  static func number(ofTry attempt: Int) -> Int {
    var random = HostRandom()
    return attempt <= 100 ? attempt : .random(in: 101...999_999_999, using: &random)
  }

  /// Whether an older job has this name, so that `NAME.part` is that job's; or a standing order has it.
  /// - Parameter source: the job that asks, where it was dropped.
  func isTaken(_ job: JobName, _ source: Path) throws(SpoolError) -> Bool {
    // Of two claims without data, the first to lock it has the name (`PartFile.open`): no need to look through `cur/`.
    guard try spool.status(.partial, job.part) != nil else {
      // And of a job and an order, `hold NAME` could not tell which is meant. A job with data keeps its name.
      return try !places(of: job.fileName, in: [.partial, .hold, .failed, .standing]).isEmpty
    }
    // The very name, where `source` still had its owner's suffix.
    if source.name != job.fileName {
      for directory in [Directory.new, .urgent] where try spool.status(directory, job.fileName) != nil { return true }
    }
    return try hasNamesake(job, otherThan: nil)
  }

  /// Whether a job of this name is where jobs with data are.
  /// - Parameter inode: of the job that asks, if it is there.
  func hasNamesake(_ job: JobName, otherThan inode: UInt64?) throws(SpoolError) -> Bool {
    // A paused job whose name still has its owner's suffix.
    if try spool.list(.hold).contains(where: { ClaimName($0)?.job == job }) { return true }
    let directories = [Directory.cur, .partial, .hold, .failed]
    // In the order in which a job moves, and in reverse: a job that is parked between two looks is seen by one of them.
    for order in [directories, directories.reversed()]
    where try places(of: job.fileName, in: order).contains(where: { $0.inode != inode }) { return true }
    return false
  }

  /// `NAME~2`, `NAME~3`, …: the first that no job has, or a random one where a hundred are taken.
  /// - Throws: ``SpoolError``, EEXIST where none is found.
  func freeName(like job: JobName) throws(SpoolError) -> JobName {
    let claimed = Set(try spool.list(.cur).compactMap { ClaimName($0)?.job })
    for attempt in 2...Self.mostTries {
      let candidate = job.numbered(Self.number(ofTry: attempt))
      // Its own, where it ends in a number: another job has it, and may be between two directories.
      if candidate == job || claimed.contains(candidate) { continue }
      let claim = ClaimName.fileName(candidate, spool.owner)
      if spool.namesInHand.withLock({ $0.contains(claim) }) { continue }
      if try spool.status(.partial, candidate.part) != nil { continue }
      var isFree = true
      for directory in [Directory.new, .urgent, .partial, .done, .failed, .hold, .standing]
      where try spool.status(directory, candidate.fileName) != nil { isFree = false }
      if isFree { return candidate }
    }
    throw SpoolError(call: .rename, path: job.display, errno: .fileExists)
  }

  /// `name`, or `NAME~2` and so on where a job has it in any state.
  package func nameInNoState(like name: JobName) throws(SpoolError) -> JobName {
    try place(of: name) == nil ? name : freeName(like: name)
  }
}
