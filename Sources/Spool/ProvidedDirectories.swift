internal import Synchronization
internal import SystemPackage

/// Directories that a spool of an older version lacks.
extension Spool {
  /// Makes `urgent/`, which spools of version 0.1 lack.
  /// - Throws: ``SpoolError``.
  package func provideUrgent() throws(SpoolError) { try provide(.urgent) }

  /// Makes a directory that spools of version 0.1 lack, and its name durable: what is put there is promised to last.
  func provide(_ directory: Directory) throws(SpoolError) {
    try provide(Path(directory))
  }

  func provide(_ directory: Path) throws(SpoolError) {
    do throws(SpoolError) { try system.makeDirectory(root, directory) } catch  where error.errno == .fileExists {
      // Whoever made it may have died before it was durable.
      if hasFlushedNames.load(ordering: .relaxed) { return }
    }
    try self.directory.fsync()
    hasFlushedNames.store(true, ordering: .relaxed)
  }
}
