internal import Glibc
internal import SystemPackage

/// The receipts that `clean --archive` has moved out of `done/`: each is a file in a directory of its month, such as
/// `done/archive/2026-11/NAME`. Where that name is taken, the directory is `2026-11~2`, and so on: a receipt keeps its
/// name, and nothing there is ever replaced. Workers do not look here.
package struct Archive: Sendable {
  static let name = FileName("archive")
  private static let directory = Path(.done, name)

  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  private static func path(_ month: FileName) -> Path { Path(directory.bytes + [0x2F] + month.bytes) }

  private func open(_ path: Path) throws(SpoolError) -> OwnedFile {
    try spool.system.open(spool.root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  /// - Parameter time: when a job was done.
  static func path(of time: Timestamp, _ number: Int = 1) -> Path {
    path(FileName("\(time)".prefix(7) + (number == 1 ? "" : "~\(number)")))
  }

  // MARK: reading

  /// The directories of months, and gzipped archives of version 0.2, the oldest first.
  private func entries() throws(SpoolError) -> [FileName] {
    // A receipt may have the name.
    guard try spool.system.statusIfPresent(spool.root, Self.directory)?.isDirectory == true else { return [] }
    let stream = DirectoryStream(try open(Self.directory))
    var names: [FileName] = []
    while let name = try stream.next() {
      if !name.isIgnored { names.append(name) }
    }
    return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// The gzipped archives of version 0.2. `contrib/unarchive` makes receipts of them.
  func oldFiles() throws(SpoolError) -> [Path] {
    try entries().filter { $0.bytes.suffix(7).elementsEqual(".tsv.gz".utf8) }.map(Self.path)
  }

  /// Hands the path of each receipt to `body`, the oldest month first. Whoever reads `done/` too reads it before: a
  /// receipt that moves meanwhile is seen twice then, by the same inode, and not missed.
  /// - Parameters:
  ///   - names: only these; nil for all.
  ///   - modifiedSince: months that nothing was moved to since are left out, in seconds since the epoch.
  package func eachPath(
    named names: Set<FileName>? = nil, modifiedSince: Int64 = .min, _ body: (Path, FileName) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    for directory in try entries().map(Self.path) {
      guard let status = try spool.system.statusIfPresent(spool.root, directory), status.isDirectory,
        status.modified >= modifiedSince
      else { continue }
      func place(_ name: FileName) -> Path { Path(directory.bytes + [0x2F] + name.bytes) }
      if let names {
        for name in names where try spool.system.statusIfPresent(spool.root, place(name)) != nil {
          try body(place(name), name)
        }
      } else {
        let stream = DirectoryStream(try open(directory))
        while let name = try stream.next() {
          if !name.isIgnored { try body(place(name), name) }
        }
      }
    }
  }

  // MARK: moving

  /// Moves a receipt here.
  /// - Parameter time: when the job was done.
  /// - Returns: the directory that has it now; nil if it is no longer in `done/` by this name.
  func take(_ receipt: FileName, doneAt time: Timestamp) throws(SpoolError) -> Path? {
    for number in 1...JobSearch.mostTries {
      let directory = Self.path(of: time, number)
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
    do throws(SpoolError) {
      try spool.moveNoReplace(Path(.done, receipt), Path(month.bytes + [0x2F] + receipt.bytes))
      return true
    } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
      return false
    }
  }

  /// Makes the directory if there is none, and its name durable.
  private func provide(_ month: Path) throws(SpoolError) {
    if try spool.system.statusIfPresent(spool.root, Self.directory)?.isRegular == true, let job = JobName(Self.name) {
      // The receipt of a job of this name.
      _ = try JobMoves(spool).moveNumbered(Self.directory, job, to: .done, hasData: false)
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
