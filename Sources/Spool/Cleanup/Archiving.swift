internal import Glibc
internal import SystemPackage

extension Archive {
  /// Moves a receipt here.
  /// - Returns: the directory that has it now; nil if it is no longer in `done/` by this name.
  func take(_ receipt: FileName, doneAt time: Timestamp) throws(SpoolError) -> Path? {
    for attempt in 1...JobSearch.mostTries {
      let directory = Self.path(of: time, JobSearch.number(ofTry: attempt))
      do throws(SpoolError) {
        if try !move(receipt, to: directory) {
          try provide(directory)
          if try !move(receipt, to: directory) { return nil }
        }
        return directory
      } catch  where error.errno == .fileExists {
        // Another job had the name in that month.
      }
    }
    throw SpoolError(call: .rename, path: Path(.done, receipt).display, errno: .fileExists)
  }

  /// - Returns: false if there is no such directory, or no such receipt.
  private func move(_ receipt: FileName, to month: Path) throws(SpoolError) -> Bool {
    guard try spool.status(.done, receipt)?.isRegular == true else { return false }
    return try orNil(
      spool.moveNoReplace(Path(.done, receipt), month.appending(receipt)), on: .noSuchFileOrDirectory, .notDirectory)
      != nil
  }

  /// Makes the directory if there is none, and its name durable.
  private func provide(_ month: Path) throws(SpoolError) {
    if try spool.system.statusIfPresent(spool.root, Self.directory)?.isRegular == true,
      let job = JobName(Spool.archiveName)
    {
      // The receipt of a job of this name.
      _ = try JobMoves(spool).moveNumbered(Self.directory, job, to: .done, data: nil)
    }
    if try spool.system.makeDirectoryIfMissing(spool.root, Self.directory) { try spool.flush(.done).run() }
    // Not `done/` as well: receipts that were moved may not be durable by their new names yet.
    if try spool.system.makeDirectoryIfMissing(spool.root, month) { try open(Self.directory).fsync() }
  }

  /// Makes moves to these directories durable: the new names first.
  func flush(_ directories: some Sequence<Path>) throws(SpoolError) {
    for directory in directories { try open(directory).fsync() }
    try open(Self.directory).fsync()
    try spool.flush(.done).run()
  }
}
